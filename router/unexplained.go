package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// namedUnexplained is how many intents a refusal names by their positions, and a start logs with
// their commands.
const namedUnexplained = 5

// Unexplained returns why nothing but administration is accepted while intents have lost parts that
// no record.erase names (state.Unexplained), and what to do; empty: there are none.
func (r *Router) Unexplained() (reason, do string) {
	first, all := r.state.Unexplained(namedUnexplained)
	if all == 0 {
		return "", ""
	}
	var at []string
	for _, u := range first {
		at = append(at, fmt.Sprint(u.Position))
	}
	if all > len(first) {
		at = append(at, "…")
	}
	return fmt.Sprintf("%d intents have lost parts, at the positions %s, and no erasure in the log took them away", all, strings.Join(at, ", ")),
		"if they were erased after the copy that was restored, an operator signs that again, with the commands that this lists: writ audit fsck --data DIR (of a whole person: writ user erase USER); else put the newest keys back"
}

// explained refuses an intent as long as others have lost parts that no record.erase names. Accepted
// is all that an operator may need to sign one: administration, and the approval of it.
func (r *Router) explained(env *intents.Envelope) error {
	reason, do := r.Unexplained()
	if reason == "" || state.Administers(env.Type()) && env.Signer().Role == intents.RoleOperator {
		return nil
	}
	if env.Type() == state.TypeApprove {
		a, err := argsOf[catalog.Approve](env)
		if err != nil {
			return err
		}
		if w, held := r.state.View().Hold(env.Principal().Tenant, a.IntentID); held && state.Administers(w.Type) {
			return nil
		}
	}
	x := intents.Refuse(intents.Overloaded, "", "no intent is taken: "+reason)
	x.RetryAfter, x.Hint = unreadyRetry, do
	return signed(env, x)
}

// logUnexplained logs the commands that sign the missing erasures.
func (r *Router) logUnexplained(ctx context.Context) {
	first, all := r.state.Unexplained(namedUnexplained)
	for _, u := range first {
		t, err := r.intentAt(ctx, u.Position)
		if err != nil {
			r.cfg.Log.ErrorContext(ctx, "an intent that has lost parts cannot be read", slog.Int64("position", u.Position), slog.String("error", err.Error()))
			continue
		}
		again := catalog.RecordErase{Tenant: t.Tenant, IntentID: t.Decision.IntentID, Position: u.Position, Parts: u.Parts}
		r.cfg.Log.ErrorContext(ctx, "an intent has lost parts, and no erasure in the log took them away: no other intent is taken until all such erasures are signed again", slog.Int("intents", all), slog.String("do", again.Command()))
	}
}

func (r *Router) intentAt(ctx context.Context, position int64) (t state.Intent, err error) {
	rec, err := r.cfg.Records.Get(ctx, position)
	if err != nil {
		return t, err
	}
	return state.ReadIntent(rec)
}

// untilExplained waits until every erasure is explained, or ctx ends.
func (r *Router) untilExplained(ctx context.Context) {
	_ = clock.Every(ctx, listenerPause, r.allExplained)
}

func (r *Router) allExplained() bool {
	_, all := r.state.Unexplained(0)
	return all == 0
}

// endUnexplained ends an open intent whose envelope is gone, and reports whether it is one: it was
// open in the copy that was restored, and nobody can send it to an executor again. The erasure itself
// is signed later.
//
// Crash: the intent is still open, and the next start ends it.
func (r *Router) endUnexplained(ctx context.Context, left storage.OpenIntent) bool {
	if !r.state.IsUnexplained(left.Position, catalog.ErasesEnvelope) {
		return false
	}
	for err := r.endErased(ctx, left); err != nil; err = r.endErased(ctx, left) {
		r.notRecovered(ctx, left, err)
		if clock.Sleep(ctx, maxFinishPause) != nil {
			break
		}
	}
	return true
}

func (r *Router) endErased(ctx context.Context, left storage.OpenIntent) error {
	t, err := r.intentAt(ctx, left.Position)
	if err != nil {
		return err
	}
	out := intents.Outcome{Target: left.Position, Attempt: left.Attempt, Status: intents.StatusIndetermined, Code: intents.Indeterminate}
	if t.Context.PlanID != "" {
		out.Sources = intents.UnknownSources()
	}
	out.Reason = "it was erased after this copy of the log was made, which lacks its outcome: an operator must look"
	if catalog.Effect(t.Decision.Effect) == catalog.Pure {
		out.Status, out.Code, out.Retryable = intents.Failed, intents.Abandoned, true
		out.Reason = "it was erased after this copy of the log was made, which lacks its outcome; it has no effect"
	}
	if task, of := r.state.View().Task(t.Tenant + "/" + t.Context.TaskID); of {
		t.Node = task.NodesOwn(t.Type, t.Decision.Executor)
	}
	rec, err := storage.OutcomeRecord(r.cfg.Now(), out)
	if err != nil {
		return err
	}
	_, err = r.cfg.Journal.Finish(ctx, left.Position, left.Attempt, rec, t.OutcomeWrites(out, false))
	if errors.Is(err, storage.ErrFinished) {
		return nil // another router has ended it
	}
	if err == nil {
		failpoint.Hit(failpoint.RecoveryEnded)
		r.metrics.finished(out.Code)
	}
	return err
}
