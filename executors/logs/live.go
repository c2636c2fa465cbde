package logs

import (
	"encoding/json"
	"sync"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
)

// maxWriting bounds the orders whose lines are in memory. The record will have those of others.
const maxWriting = 1024

// live are the lines of orders whose outcome may not be recorded yet, by position.
type live struct {
	mu      sync.Mutex // guards all
	orders  map[int64]*writing
	version int // grows with each change
}

// writing is one attempt at an order. Only its lines grow.
type writing struct {
	executor, tenant, plan string
	step, attempt          int
	until                  time.Time
	lines                  []intents.Line
}

// written takes what an executor has published. It counts only of an order that the router
// has told this executor to carry out, as its ticket says, and that may still run.
func (l *Logs) written(executor string, data []byte) {
	var w executors.Written
	if intents.Unambiguous(data) != nil || json.Unmarshal(data, &w) != nil {
		return
	}
	begun := l.begun(executor, w)
	l.live.mu.Lock()
	defer l.live.mu.Unlock()
	now := l.live.orders[w.Position]
	if begun != nil && (now == nil || now.attempt < w.Attempt) && l.live.room(l.Now()) {
		now = begun
		l.live.orders[w.Position] = now
	}
	if now == nil || now.executor != executor || now.attempt != w.Attempt {
		return
	}
	l.live.version++
	if w.Over {
		delete(l.live.orders, w.Position)
	} else if w.First == len(now.lines) { // else some were lost: the record will have them
		now.lines = intents.Bounded(executor, append(now.lines, w.Lines...))
	}
}

// begun is the attempt that a ticket is for; nil: there is none, or none that counts.
func (l *Logs) begun(executor string, w executors.Written) *writing {
	if w.Ticket == "" {
		return nil
	}
	t, err := intents.OpenTicket(w.Ticket, l.RouterKeys)
	if err != nil || t.Issuer != l.Origin || t.Executor != executor || t.Position != w.Position || t.Attempt != w.Attempt ||
		t.Scope == nil || !l.Now().Before(t.Deadline) || !intents.Keepable(t.Obligations) {
		return nil
	}
	return &writing{executor: executor, tenant: t.Actor.Tenant, plan: t.Scope.Plan, step: t.Scope.Step, attempt: t.Attempt, until: t.Deadline.Add(idle)}
}

// room makes room for one more.
func (v *live) room(now time.Time) bool {
	if len(v.orders) < maxWriting {
		return true
	}
	for at, w := range v.orders {
		if now.After(w.until) {
			delete(v.orders, at)
		}
	}
	return len(v.orders) < maxWriting
}

// of are the orders of a plan that are being carried out, as they are now.
func (v *live) of(tenant, plan string) (out map[int64]writing, version int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out = map[int64]writing{}
	for at, w := range v.orders {
		if w.tenant == tenant && w.plan == plan {
			out[at] = *w
		}
	}
	return out, v.version
}
