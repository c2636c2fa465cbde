package router

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/policies"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// order is one order on its way through the stages.
type order struct {
	env   *intents.Envelope
	view  *state.View
	now   time.Time
	row   catalog.Row
	task  *state.Task
	pin   *intents.Pin
	roles []string
	// policy is the engine that decides: one generation for the whole decision.
	policy *policies.Engine

	decision intents.Decision
	facts    intents.Facts
	violated []schemas.Violation // of a SCHEMA_INVALID: all of them
	busyWith string              // of a SESSION_BUSY: the plan that is meant

	key       storage.Key
	holder    int64         // who held the key when this was decided
	duplicate *duplicate    // the same order was accepted before
	effect    *state.Effect // of a router order
	position  int64         // after commit
	slot      *slots        // that it has taken a place in; nil: in none
	attempt   int           // of the dispatch
	unheard   bool          // its last dispatch found no executor
	again     bool          // what it relied on has changed: decided before
	repeated  bool          // a refusal that has a record already
	record    recordedRef   // digests for the receipt
	released  bool          // it was held and goes on: judged with today's roles
	settled   *settlement   // of an approval: what it does to its held order
	replay    *state.Replay // of a run.replay: what it keeps of the run
}

// recordedRef is what a receipt says of an order's records.
type recordedRef struct {
	record, outcome string
	out             *intents.Outcome
}

// stages of decide that end in a record when they refuse, in order.
func (r *Router) stages() []stage {
	return []stage{
		{"schema", r.schema},           // 3
		{"freshness", r.freshness},     // 4: refusals are counted, not recorded
		{"idempotency", r.idempotency}, // 5
		{"rbac", r.rbac},               // 6
		{"prove_push", r.provePush},    // of 5, but expensive: only for those who may push
		{"may_erase", r.mayErase},      // likewise
		{"policy", r.authorize},        // 7
	}
}

// stage is one by its name, for those who watch.
type stage struct {
	name string
	run  func(context.Context, *order) error
}

// Meter is told how orders fare. Implementations are safe for concurrent use.
type Meter interface {
	// Stage took a time of one order.
	Stage(name string, took time.Duration)
	// Decided says how an order was decided, and by which rules of the policy. typ is empty
	// where it is none of the catalog, or not known to be the signer's.
	Decided(typ, code string, rules []string)
}

// took tells that a stage, which began then, has ended: to the meter, and in the order's
// span.
func (r *Router) took(ctx context.Context, stage string, began time.Time) {
	trace.SpanFromContext(ctx).AddEvent(stage)
	if r.cfg.Meter != nil {
		r.cfg.Meter.Stage(stage, time.Since(began))
	}
}

// Submit takes a received order through the pipeline. The error is a *Refusal
// that left no record (stages 1, 2 and 4, a rate, a task that has ended), or a failure
// of the router: then nothing was accepted. Everything else is an Answer, refusals included.
//
// Crash: before commit nothing is left; in perform an open order is left, which
// recovery ends by its effect.
func (r *Router) Submit(ctx context.Context, raw []byte) (a *intents.Answer, err error) {
	ctx, span := tracing.StartIn(ctx, traceOf(ctx, raw), "router")
	defer func() {
		if a != nil {
			span.SetAttributes(tracing.Order.String(a.IntentID))
		}
		tracing.End(span, string(codeOf(a, err)))
		if err != nil && intents.CodeOf(err) == intents.Internal { // the caller gets no more than the code
			r.cfg.Log.ErrorContext(ctx, "order", slog.String("trace_id", claimed(raw).TraceID), slog.String("error", err.Error()))
		}
	}()
	for i := range maxDecisions {
		o, err := r.attempt(ctx, raw, i > 0)
		if errors.Is(err, errStale) {
			continue // something that it relied on has changed: decide again
		}
		if err != nil {
			return nil, err
		}
		if a, err = r.perform(ctx, o); err != nil {
			return nil, err
		}
		return a, r.tell(o, a)
	}
	err = intents.Refuse(intents.Overloaded, "", "what the decision rests on changes too fast")
	r.turnedDown(ctx, raw, err)
	return nil, err
}

// traceOf is the trace of an order, or empty as long as nobody traces who has sent it.
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

// codeOf what became of a submission.
func codeOf(a *intents.Answer, err error) intents.Code {
	if a != nil {
		return a.Code
	}
	return intents.CodeOf(err)
}

// maxDecisions bounds how often one submission is decided again.
const maxDecisions = 8

// DryRun decides an order and leaves no trace: nothing is committed or counted.
func (r *Router) DryRun(ctx context.Context, raw []byte) (*intents.Answer, error) {
	o, err := r.decide(ctx, raw, false)
	if err != nil {
		return nil, err
	}
	if err := mayExplain(o); err != nil {
		return nil, err
	}
	return r.decided(o), nil
}

// mayExplain refuses a dry run to who may not see decisions.
func mayExplain(o *order) error {
	var roles []string
	if g := o.env.Grant(); g != nil {
		roles, _ = o.view.RolesNow(g)
	} else {
		roles, _, _ = o.view.UserRoles(o.env.Principal().Tenant, o.env.Principal().UserID)
	}
	caps, _ := o.view.Capabilities(o.env.Principal().Tenant, roles)
	if o.env.Signer().Role == intents.RoleTask || !state.Covered(intents.CurrentRules, caps, "policy:explain") {
		return intents.Refuse(intents.RBACForbidden, "", "a dry run needs policy:explain and is never for a task's key")
	}
	return nil
}

// Decide gives the code of stages 1 to 7 and leaves no trace: what a decision
// costs, with nothing else. The error is as that of Submit.
func (r *Router) Decide(ctx context.Context, raw []byte) (intents.Code, error) {
	o, err := r.decide(ctx, raw, false)
	if err != nil {
		return intents.CodeOf(err), err
	}
	return o.decision.Code, nil
}

// decide is stages 1 to 7. It writes nothing. A refusal in 3, 5, 6 or 7 and a
// duplicate are decisions; the error is a refusal of 1, 2 or 4, of the key of a task
// that has ended, a rate that is exceeded, or a failure of the router. again: the same submission was
// decided before.
//
// Rates are metered as soon as it is known who signed: no later refusal may leave
// a record before.
func (r *Router) decide(ctx context.Context, raw []byte, again bool) (*order, error) {
	u, err := intents.Parse(raw) // 1
	if err != nil {
		return nil, err
	}
	now := r.cfg.Now().UTC().Truncate(time.Millisecond) // in milliseconds, as records keep it
	o := &order{view: r.state.View(), now: now, holder: storage.Nobody, attempt: 1, again: again}
	began := time.Now()
	o.env, err = r.verify(u, o.view, now) // 2
	r.took(ctx, "signature", began)
	if err != nil {
		return nil, err
	}
	if err := r.rate(o); err != nil {
		return nil, signed(o, err)
	}
	o.view.RelyOnPolicy(o.env.Principal().Tenant) // before the engine is made of it
	if o.policy, err = r.engine(ctx, o.view); err != nil {
		return nil, err // no policy: nothing is accepted
	}
	o.decision = intents.Decision{
		Verdict: intents.Allow, Code: intents.OK, IntentID: o.env.ID(), Fingerprint: o.env.Fingerprint(),
		PolicyDigest: o.policy.Digest(), Catalog: r.cfg.Catalog.Digest(), Directory: o.view.Position(),
	}
	o.facts.Signer = intents.FactSigner{KID: o.env.Signer().KID, Role: string(o.env.Signer().Role)}
	o.facts.Now = intents.FormatTime(now)
	for _, stage := range r.stages() {
		began := time.Now()
		err := stage.run(ctx, o)
		r.took(ctx, stage.name, began)
		if err == nil {
			continue
		}
		var refusal *intents.Refusal
		if !errors.As(err, &refusal) {
			return nil, err // a failure of the router: fail closed
		}
		if refusal.Code == intents.ExpiredTTL || refusal.Code == intents.NotYetValid || o.ofEndedTask() {
			return nil, signed(o, err) // all others are decisions
		}
		o.refuse(refusal)
		o.violated, o.busyWith = refusal.Violations, refusal.PlanID
		break
	}
	return o, nil
}

// ofEndedTask says whether the order is signed by the key of a task that has ended or
// is past its deadline. Whoever holds such a key has all time to make orders of it:
// their refusals are counted, and what was accepted is answered.
func (o *order) ofEndedTask() bool {
	if o.env.Signer().Role != intents.RoleTask {
		return false
	}
	t, ok := o.view.Task(o.env.Signer().Task)
	return !ok || t.Over(o.now)
}

// signedError is a refusal of an order whose signature holds: who floods is known.
type signedError struct {
	error
	kid string
}

func (e *signedError) Unwrap() error { return e.error }

func signed(o *order, err error) error { return &signedError{err, o.env.Signer().KID} }

// refuse makes the decision a denial, or a hold where people must approve.
func (o *order) refuse(x *intents.Refusal) {
	d := &o.decision
	d.Verdict = intents.Deny
	if x.Code == intents.ApprovalRequired {
		d.Verdict = intents.Hold
	}
	d.Code, d.Pointer, d.Reason, d.PolicyIDs, d.Retryable, d.Hint = x.Code, x.Pointer, x.Reason, x.PolicyIDs, x.Retryable, x.Hint
}

// verify is stage 2: signature, key and grant.
func (r *Router) verify(u *intents.Unverified, v *state.View, now time.Time) (*intents.Envelope, error) {
	e, err := u.Verify(intents.Verifier{Keys: v, Origin: r.state.Origin(), Now: now, Grants: &r.grants})
	if err != nil {
		return nil, err
	}
	return e, revoked(e, v)
}

// revoked refuses orders whose grant was issued before its user's were revoked.
func revoked(e *intents.Envelope, v *state.View) error {
	g := e.Grant()
	if g == nil {
		return nil
	}
	if before := v.Revoked(g.Tenant, g.Subject); !before.IsZero() && time.Unix(g.IssuedAt, 0).Before(before) {
		return intents.Refuse(intents.GrantInvalid, "/actor/grant", "grant is revoked")
	}
	return nil
}

// decided is the answer about a decision alone.
func (r *Router) decided(o *order) *intents.Answer {
	a := answerOf(&o.decision)
	a.TraceID, a.Violations, a.PlanID = o.env.TraceID(), o.violated, o.busyWith
	return a
}

func answerOf(d *intents.Decision) *intents.Answer {
	return &intents.Answer{IntentID: d.IntentID, Decision: d, Code: d.Code, Pointer: d.Pointer, Reason: d.Reason, Hint: d.Hint}
}
