package logs

import (
	"encoding/json"
	"strconv"
	"sync"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
)

// writingShares bound the intents whose lines are in memory: all, a tenant's, and a plan's. The
// lines of others are only in the record.
var writingShares = ratelimit.Shares{All: 1024, Tenant: 512, Key: 128}

// live holds the lines of intents whose outcome may not be recorded yet, by position.
type live struct {
	mu      sync.Mutex // guards all
	intents *ratelimit.Table[*writing]
	version int // grows with each change
}

// writing is one attempt at an intent. Only its lines grow.
type writing struct {
	executor, tenant, plan string
	step, attempt          int
	position               int64
	lines                  []intents.Line
}

// written accepts a chunk that an executor published. It counts only for an intent that the router
// dispatched to this executor, as its ticket says, and that may still run.
func (l *Logs) written(executor string, data []byte) {
	var w executors.LogChunk
	if intents.Unambiguous(data) != nil || json.Unmarshal(data, &w) != nil {
		return
	}
	begun := l.begun(executor, w)
	l.live.mu.Lock()
	defer l.live.mu.Unlock()
	id := strconv.FormatInt(w.Position, 10)
	now, _ := l.live.intents.Get(id)
	if begun != nil && (now == nil || now.attempt < w.Attempt) {
		now = begun
		l.live.intents.Put(id, now.tenant, now.plan, 1, now)
	}
	if now == nil || now.executor != executor || now.attempt != w.Attempt {
		return
	}
	l.live.version++
	if w.Ended {
		l.live.intents.Remove(id)
	} else if w.First == len(now.lines) { // else some were lost: the record will have them
		now.lines = intents.BoundLines(executor, append(now.lines, w.Lines...))
	}
}

// begun is the attempt that a ticket is for; nil: there is none, or none that counts.
func (l *Logs) begun(executor string, w executors.LogChunk) *writing {
	if w.Ticket == "" {
		return nil
	}
	t, err := intents.OpenTicket(w.Ticket, l.RouterKeys)
	if err != nil || t.Issuer != l.Origin || t.Executor != executor || t.Position != w.Position || t.Attempt != w.Attempt ||
		t.Scope == nil || !l.Now().Before(t.Deadline) || !intents.Keepable(t.Obligations) {
		return nil
	}
	return &writing{executor: executor, tenant: t.Actor.Tenant, plan: t.Scope.Plan, step: t.Scope.Step, attempt: t.Attempt, position: t.Position}
}

// running returns the intents of a plan that are being executed, as they are now.
func (v *live) running(tenant, plan string) (out map[int64]writing, version int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out = map[int64]writing{}
	for _, w := range v.intents.All() {
		if w.tenant == tenant && w.plan == plan {
			out[w.position] = *w
		}
	}
	return out, v.version
}
