package router

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/state"
)

// Meter receives measurements of intents. Implementations are safe for concurrent use.
type Meter interface {
	// Stage reports the time that a stage took for one intent.
	Stage(name string, took time.Duration)
	// Decided reports a decision's code and the policy rules behind it. typ is empty if it is not
	// in the catalog, or not known to be the signer's.
	Decided(typ, code string, rules []string)
}

// took reports the end of a stage to the meter and in the intent's span, and returns when it was.
func (r *Router) took(ctx context.Context, stage string, began time.Time) (ended time.Time) {
	trace.SpanFromContext(ctx).AddEvent(stage)
	ended = time.Now()
	if r.cfg.Meter != nil {
		r.cfg.Meter.Stage(stage, ended.Sub(began))
	}
	return ended
}

// Submit takes a received intent through the pipeline. The error is a *Refusal that left no record
// (stages 1, 2 and 4, a rate, a task that has ended), or a failure of the router; in both cases
// nothing was accepted. Everything else is an Answer, refusals included.
//
// Crash: before commit nothing is left; in perform an open intent is left, which recovery ends by
// its effect.
func (r *Router) Submit(ctx context.Context, raw []byte) (*intents.Answer, error) {
	a, _, err := r.submit(ctx, raw)
	return a, err
}

// submit is Submit, and also returns the verified envelope.
func (r *Router) submit(ctx context.Context, raw []byte) (a *intents.Answer, env *intents.Envelope, err error) {
	ctx, span := tracing.StartIn(ctx, traceOf(ctx, raw), "router")
	defer func() {
		if a != nil {
			span.SetAttributes(tracing.Intent.String(a.IntentID))
		}
		tracing.End(span, string(codeOf(a, err)))
		if err != nil && intents.CodeOf(err) == intents.Internal { // the caller gets no more than the code
			r.cfg.Log.ErrorContext(ctx, "intent", slog.String("trace_id", claimed(raw).TraceID), slog.String("error", err.Error()))
		}
	}()
	in, err := r.verify(ctx, raw)
	if err == nil {
		err = r.explained(in.env)
	}
	if err != nil {
		r.turnedDown(ctx, raw, err)
		return nil, nil, err
	}
	x, err := r.accept(ctx, raw, in)
	if err != nil {
		return nil, nil, err
	}
	if a, err = r.perform(ctx, x); err != nil {
		return nil, nil, err
	}
	return a, in.env, r.addDetails(ctx, x, a)
}

// traceOf is the trace of an intent, or empty if its sender is not traced.
func traceOf(ctx context.Context, raw []byte) string {
	if !tracing.In(ctx) {
		return ""
	}
	u, err := intents.Parse(raw)
	if err != nil {
		return ""
	}
	return cmp.Or(u.TraceID(), intents.TraceOf(u.ID()))
}

// codeOf is the code of a submission's result.
func codeOf(a *intents.Answer, err error) intents.Code {
	if a != nil {
		return a.Code
	}
	return intents.CodeOf(err)
}

// maxDecisions bounds how often one submission is decided again.
const maxDecisions = 8

// errStale: something that the decision read has changed.
var errStale = errors.New("router: decide again")

// accept decides an intent whose signature is valid and commits the decision. It repeats both as
// long as something that the decision read has changed meanwhile.
func (r *Router) accept(ctx context.Context, raw []byte, in verified) (x *execution, err error) {
	for range maxDecisions {
		if x, err = r.decideAndCommit(ctx, raw, in); !errors.Is(err, errStale) {
			return x, err
		}
		if in, err = r.reverify(in.env); err != nil {
			r.turnedDown(ctx, raw, err)
			return nil, err
		}
	}
	err = intents.Refuse(intents.Overloaded, "", "what the decision rests on changes too fast")
	r.turnedDown(ctx, raw, err)
	return nil, err
}

// decideAndCommit runs stages 3 to 8 once. Control intents change what each of them reads, such as
// a tenant's data: side by side they would invalidate each other until one gave up. They are
// decided once more while they hold the control turn.
func (r *Router) decideAndCommit(ctx context.Context, raw []byte, in verified) (x *execution, err error) {
	d, err := r.decide(ctx, in)
	if err == nil && d.Verdict == intents.Allow && state.Administers(in.env.Type()) {
		r.turn.Lock()
		defer r.turn.Unlock()
		d, err = r.decideNow(ctx, in.env)
	}
	if err != nil {
		r.turnedDown(ctx, raw, err)
		return nil, err
	}
	failpoint.Hit(failpoint.IntentDecided)
	began := time.Now()
	x, err = r.commit(ctx, d)
	r.took(ctx, "commit", began)
	if err != nil && !errors.Is(err, errStale) && intents.CodeOf(err) == intents.Overloaded {
		r.turnedDown(ctx, raw, signed(in.env, err))
	}
	return x, err
}

// decideOnce runs stages 1 to 7 and leaves no trace.
func (r *Router) decideOnce(ctx context.Context, raw []byte) (*decision, error) {
	in, err := r.verify(ctx, raw)
	if err != nil {
		return nil, err
	}
	return r.decide(ctx, in)
}

// DryRun decides an intent and leaves no trace: nothing is committed or counted.
func (r *Router) DryRun(ctx context.Context, raw []byte) (*intents.Answer, error) {
	d, err := r.decideOnce(ctx, raw)
	if err != nil {
		return nil, err
	}
	if err := mayExplain(d); err != nil {
		return nil, err
	}
	return d.answer(), nil
}

// mayExplain refuses a dry run to callers who may not see decisions.
func mayExplain(d *decision) error {
	var roles []string
	if g := d.env.Grant(); g != nil {
		roles, _ = d.view.RolesNow(g)
	} else {
		roles, _, _ = d.view.UserRoles(d.env.Principal().Tenant, d.env.Principal().UserID)
	}
	caps, _ := d.view.Capabilities(d.env.Principal().Tenant, roles)
	if d.env.Signer().Role == intents.RoleTask || !state.Covers(caps, "policy:explain") {
		return intents.Refuse(intents.RBACForbidden, "", "a dry run needs policy:explain and is never for a task's key")
	}
	return nil
}

// Decide returns the code of stages 1 to 7 and leaves no trace. It measures the cost of a decision
// alone. The error is that of Submit.
func (r *Router) Decide(ctx context.Context, raw []byte) (intents.Code, error) {
	d, err := r.decideOnce(ctx, raw)
	if err != nil {
		return intents.CodeOf(err), err
	}
	return d.Code, nil
}
