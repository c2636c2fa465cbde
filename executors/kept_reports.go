package executors

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/clock"
)

// A report is kept until the router has recorded it, for at most keepFor. All kept reports have at
// most keepBytes; beyond that the oldest are dropped.
const (
	keepFor   = 10 * time.Minute
	keepBytes = 64 << 20
)

// unknownPause is how long a process that knows nothing of an attempt leaves the answer to one that
// does.
const unknownPause = 200 * time.Millisecond

// attempt is one attempt at an intent.
type attempt struct {
	intent string
	number int
}

// keptReports are what the service knows of the attempts that it has begun. A router that succeeds
// another one, or has lost an answer, asks for them. They are in memory: a process that ends forgets
// them, and what it has begun is then unknown. Safe for concurrent use.
type keptReports struct {
	mu    sync.Mutex // guards the fields below
	by    map[attempt]*keptReport
	ended list.List // *keptReport, the oldest first
	bytes int
}

// keptReport is what is known of one attempt.
type keptReport struct {
	done chan struct{} // closed with the report

	progress *atomic.Pointer[bus.Progress]
	cancel   context.CancelCauseFunc // ends the run

	raw   []byte    // set before done is closed
	at    time.Time // when it ended
	of    attempt
	place *list.Element // in the list of those that have ended; nil: it runs
}

// begin records an attempt that begins now. It returns one that has begun before.
func (k *keptReports) begin(a attempt, progress *atomic.Pointer[bus.Progress], cancel context.CancelCauseFunc) (earlier *keptReport) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if earlier = k.by[a]; earlier != nil {
		return earlier
	}
	if k.by == nil {
		k.by = map[attempt]*keptReport{}
	}
	k.by[a] = &keptReport{of: a, done: make(chan struct{}), progress: progress, cancel: cancel}
	return nil
}

// end keeps the report of an attempt.
func (k *keptReports) end(a attempt, raw []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.by[a]
	r.raw, r.at = raw, time.Now()
	close(r.done)
	r.place, k.bytes = k.ended.PushBack(r), k.bytes+len(raw)
	for oldest := k.ended.Front(); oldest != nil; oldest = k.ended.Front() {
		first, ok := oldest.Value.(*keptReport)
		if !ok || k.bytes <= keepBytes && time.Since(first.at) <= keepFor {
			return
		}
		k.drop(first)
	}
}

// drop a report that has come. The lock is held.
func (k *keptReports) drop(r *keptReport) {
	k.ended.Remove(r.place)
	delete(k.by, r.of)
	k.bytes -= len(r.raw)
}

// recorded drops the report of an attempt whose outcome the router has recorded.
func (k *keptReports) recorded(a attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.by[a]; r != nil && r.place != nil {
		k.drop(r)
	}
}

// of an attempt; nil: it is unknown.
func (k *keptReports) of(a attempt) *keptReport {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.by[a]
	if r != nil && r.place != nil && time.Since(r.at) > keepFor {
		return nil
	}
	return r
}

// wait for the report.
func (r *keptReport) wait(ctx context.Context) []byte {
	select {
	case <-r.done:
		return r.raw
	case <-ctx.Done():
		return nil // the router asks for it
	}
}

// errCancelled ends a run that nobody wants any more.
var errCancelled = errors.New("nobody wants it any more")

// answerReports answers a router that asks what became of an attempt.
func (s *Service) answerReports(ctx context.Context, data []byte) []byte {
	var q bus.ReportRequest
	if err := json.Unmarshal(data, &q); err != nil {
		return nil
	}
	for _, a := range q.Recorded {
		s.reports.recorded(attempt{a.IntentID, a.Number})
	}
	reply := bus.ReportReply{State: bus.ReportUnknown}
	switch r := s.reports.of(attempt{q.IntentID, q.Number}); {
	case r == nil:
		if q.IntentID != "" {
			_ = clock.Sleep(ctx, unknownPause) // a process that stops answers at once
		}
	default:
		reply.State, reply.Progress = bus.ReportRunning, r.progress.Load()
		if q.Cancel {
			r.cancel(errCancelled)
		}
		select {
		case <-r.done:
			reply.State, reply.Report = bus.ReportDone, r.raw
		default:
		}
	}
	raw, err := json.Marshal(reply)
	if err != nil {
		return nil
	}
	return raw
}
