package router_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// unwritable is a journal that refuses outcomes for a while.
type unwritable struct {
	storage.Journal
	err  error
	left atomic.Int64 // outcomes that it refuses
}

func (j *unwritable) Finish(ctx context.Context, of int64, attempt int, out storage.Record, writes []storage.Subject) (int64, error) {
	if j.left.Add(-1) >= 0 {
		return storage.NoPosition, j.err
	}
	return j.Journal.Finish(ctx, of, attempt, out, writes)
}

// TestOutcomesAreWrittenAtLast: an outcome that cannot be written for want of space, or for another
// temporary reason, is written later, whatever started the execution; its submitter gets IN_FLIGHT.
// Then its slot is free again.
func TestOutcomesAreWrittenAtLast(t *testing.T) {
	for why, fault := range map[string]error{"no room": storage.ErrFull, "another": errDisk} {
		for name, submit := range map[string]func(w *routertest.World, j *unwritable, task *routertest.Task) (position int64){
			"alone": func(w *routertest.World, j *unwritable, task *routertest.Task) int64 {
				j.left.Store(2)
				return *w.Want(task.Call("feed", `{}`), intents.InFlight).Position
			},
			"of a batch": func(w *routertest.World, j *unwritable, task *routertest.Task) int64 {
				j.left.Store(2)
				one, other := w.Sign(task.CallIntent("feed", `{}`)), w.Sign(task.CallIntent("feed", `{"n":2}`))
				b := w.Router.SubmitBatch(w.Context(), fmt.Appendf(nil, `{"atomic":true,"intents":[%s,%s]}`, one, other), 0)
				if b.Code != intents.OK {
					w.Errorf("%+v", b)
				}
				return *b.Answers[0].Position
			},
			"released": func(w *routertest.World, j *unwritable, task *routertest.Task) int64 {
				w.Data("approval", `{"skills":["feed"]}`)
				x := releaseWorld{w, task, w.Want(task.Call("feed", `{}`), intents.ApprovalRequired)}
				j.left.Store(2)
				w.Want(x.says("ben", catalog.DecisionApprove), intents.OK)
				return *x.held.Position
			},
		} {
			t.Run(name+", "+why, func(t *testing.T) {
				j := &unwritable{err: fault}
				w := routertest.New(t, routertest.Options{Slots: 1, ChildSlots: 1, Wrap: func(inner storage.Journal) storage.Journal { j.Journal = inner; return j }})
				people(w)
				task := started(w, catalog.Once)
				position := submit(w, j, task)
				a, err := w.Router.Await(t.Context(), position)
				w.Must(err)
				w.Want(a, intents.OK)
				noneOpen(w)
				if n := j.left.Load(); n >= 0 {
					t.Errorf("%d outcomes were not refused", n)
				}
				w.Router.Quiet()
				w.Want(task.Call("feed", `{"n":3}`), map[bool]intents.Code{true: intents.ApprovalRequired, false: intents.OK}[name == "released"])
			})
		}
	}
}

// TestRecoveryWritesAtLast: recovery does the same, with the outcome of an intent that was left
// open and with the attempt that it begins.
func TestRecoveryWritesAtLast(t *testing.T) {
	j := &unwritable{err: storage.ErrFull}
	w := routertest.New(t, routertest.Options{Wrap: func(inner storage.Journal) storage.Journal { j.Journal = inner; return j }})
	task := started(w, catalog.Once)
	inMemory(w).FailNext(errDisk, true)
	raw := w.Sign(task.CallIntent("feed", `{}`))
	w.Want(w.Send(raw), intents.InFlight) // nobody executes it
	j.left.Store(2)
	w = w.Restart()
	w.Want(w.Send(raw), intents.Indeterminate)
}

// faulty makes the nth call of an intent fail, before or after its effect.
type faulty struct {
	storage.Journal
	on      bool
	at      int // which call, from 1
	persist bool
	calls   []string
}

// fails reports whether this call is the one.
func (j *faulty) fails(name string) bool {
	if !j.on {
		return false
	}
	j.calls = append(j.calls, name)
	return len(j.calls) == j.at
}

func (j *faulty) Lookup(ctx context.Context, k storage.Key) (storage.Holder, bool, error) {
	if j.fails("lookup") {
		return storage.Holder{}, false, errDisk
	}
	return j.Journal.Lookup(ctx, k)
}

func (j *faulty) Holder(ctx context.Context, position int64) (storage.Holder, error) {
	if j.fails("holder") {
		return storage.Holder{}, errDisk
	}
	return j.Journal.Holder(ctx, position)
}

func (j *faulty) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	if !j.fails("commit") {
		return j.Journal.Commit(ctx, c)
	}
	if j.persist {
		_, _ = j.Journal.Commit(ctx, c)
	}
	return storage.Result{}, errDisk
}

func (j *faulty) Finish(ctx context.Context, of int64, attempt int, out storage.Record, writes []storage.Subject) (int64, error) {
	if !j.fails("finish") {
		return j.Journal.Finish(ctx, of, attempt, out, writes)
	}
	if j.persist {
		_, _ = j.Journal.Finish(ctx, of, attempt, out, writes)
	}
	return storage.NoPosition, errDisk
}

// The journal fails once at each call that an intent makes, with or without its effect. The
// submitter never gets a refusal; an accepted intent ends once; sent again it has one effect at
// most, and no answer is without a record.
func TestJournalFailsAtEachCall(t *testing.T) {
	for name, intent := range map[string]func(w *routertest.World, task *routertest.Task) routertest.Intent{
		"dispatched": func(_ *routertest.World, task *routertest.Task) routertest.Intent {
			return task.CallIntent("feed", `{}`)
		},
		"by the router": func(_ *routertest.World, task *routertest.Task) routertest.Intent { return task.ClaimIntent(2) },
	} {
		for _, persist := range []bool{false, true} {
			reached := 0
			for at := 1; ; at++ {
				j := &faulty{at: at, persist: persist}
				w := routertest.New(t, routertest.Options{Slots: 1, ChildSlots: 1, Wrap: func(inner storage.Journal) storage.Journal { j.Journal = inner; return j }})
				task := started(w, catalog.Once)
				raw := w.Sign(intent(w, task))
				j.on = true
				first := w.Send(raw)
				j.on = false
				if len(j.calls) < at {
					break // it makes no more calls
				}
				reached++
				failed := j.calls[at-1]
				if first.Code != intents.InFlight && first.Code != intents.Internal {
					t.Errorf("%s, %s fails (persists %v): told %s", name, failed, persist, first.Code)
				}
				if first.Outcome != nil {
					t.Errorf("%s, %s fails (persists %v): told %+v", name, failed, persist, first)
				}
				again := w.Send(raw)
				if again.Code == intents.InFlight && failed == "finish" { // its outcome is written later
					var err error
					again, err = w.Router.Await(t.Context(), *again.Position)
					w.Must(err)
				}
				if again.Code == intents.InFlight { // accepted, and nobody executes it any more
					w = w.Restart()
					again = w.Send(raw)
				}
				if again.Code != intents.OK && again.Code != intents.Indeterminate {
					t.Errorf("%s, %s fails (persists %v): then %s %s", name, failed, persist, again.Code, again.Reason)
				}
				if again.Receipt == "" || again.Outcome == nil {
					t.Errorf("%s, %s fails (persists %v): then without outcome", name, failed, persist)
				}
				if n := len(w.Bus.Calls("skill.call")); n > 1 {
					t.Errorf("%s, %s fails (persists %v): %d effects", name, failed, persist, n)
				}
				noneOpen(w)
			}
			if reached < 2 {
				t.Errorf("%s: only %d calls failed", name, reached)
			}
		}
	}
}
