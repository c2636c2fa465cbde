package router

import (
	"context"
	"errors"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// decision is the result of stages 3 to 7 for an intent on one view of the state, or as a record
// has it. Making one writes nothing, takes no slot, and has no effect by itself.
type decision struct {
	intents.Decision // as it is recorded and answered
	inputs           intents.DecisionInputs

	env   *intents.Envelope
	view  *state.View // with everything that the decision read
	now   time.Time
	row   catalog.Row
	task  *state.Task
	pin   *intents.Pin
	roles []string
	// policy is the engine that decides: one generation for the whole decision.
	policy *policies.Engine

	violated []schemas.Violation // of a SCHEMA_INVALID: all of them
	busyWith string              // plan_id reported with SESSION_BUSY
	after    int                 // seconds after which it may succeed; 0: not known

	key         storage.Key
	fingerprint string        // of the intent, once asked for
	holder      int64         // who held the key at the time of the decision
	duplicate   *duplicate    // the same intent was accepted before
	result      *state.Effect // of a router intent
	replay      *state.Replay // of a run.replay: what it retains of the run
	release     *release      // of a held intent that is released
	seen        []string      // rules that held the call whose standing approval lets it through
}

// release belongs to the decision about a held intent. The intent is judged with today's roles, on
// its retained inputs.
type release struct {
	position   int64              // the position of the held intent
	requesters intents.Requesters // who requested it; empty once it is decided
}

// stage is a stage and its name, for observers.
type stage struct {
	name string
	run  func(*Router, context.Context, *decision) error
}

// stages are those of decide that end in a record when they refuse, in order.
func stages() [7]stage {
	return [...]stage{
		{"schema", (*Router).schema},           // 3
		{"freshness", (*Router).freshness},     // 4: refusals are counted, not recorded
		{"idempotency", (*Router).idempotency}, // 5
		{"rbac", (*Router).rbac},               // 6
		{"prove_push", (*Router).provePush},    // of 5, but expensive: only for those who may push
		{"may_erase", (*Router).mayErase},      // likewise
		{"policy", (*Router).authorize},        // 7
	}
}

// decideNow is decide on the state of now, after the checks of stage 2 that may have changed: the error
// may be their refusal.
func (r *Router) decideNow(ctx context.Context, env *intents.Envelope) (*decision, error) {
	in, err := r.reverify(env)
	if err != nil {
		return nil, err
	}
	return r.decide(ctx, in)
}

// decide runs stages 3 to 7 on the state that stage 2 saw. It writes nothing. A refusal in 3, 5, 6 or 7
// and a duplicate are decisions. The error is a refusal of 4, a refusal of an ended task's key, or a
// failure of the router.
func (r *Router) decide(ctx context.Context, in verified) (_ *decision, err error) {
	env, v := in.env, in.view
	d := &decision{env: env, view: v, now: in.now, holder: storage.NoPosition}
	v.AddPolicyReads(env.Principal().Tenant) // before the engine is built from it
	if d.policy, err = r.engine(ctx, v, env.Principal().Tenant); err != nil {
		return nil, err // no policy: nothing is accepted
	}
	d.Decision = intents.Decision{
		Verdict: intents.Allow, Code: intents.OK, IntentID: env.ID(),
		PolicyDigest: d.policy.Digest(), Catalog: r.cfg.Catalog.Digest(), Directory: v.Position(),
	}
	d.inputs.Signer = intents.SignerInput{KID: env.Signer().KID, Role: string(env.Signer().Role)}
	d.inputs.Now = intents.FormatTime(d.now)
	began := time.Now()
	for _, stage := range stages() {
		err := stage.run(r, ctx, d)
		began = r.took(ctx, stage.name, began)
		if err == nil {
			continue
		}
		var refusal *intents.Refusal
		if !errors.As(err, &refusal) {
			return nil, err // a failure of the router: fail closed
		}
		if refusal.Code == intents.ExpiredTTL || refusal.Code == intents.NotYetValid || d.ofEndedTask() {
			return nil, signed(env, err) // all others are decisions
		}
		d.refuse(refusal)
		break
	}
	return d, nil
}

// rbac is stage 6 (state.Directory.Permits).
func (r *Router) rbac(_ context.Context, d *decision) (err error) {
	if d.roles, err = d.view.Permits(d.env, d.row.Capability); err != nil {
		return err
	}
	d.inputs.Roles = slices.Clone(d.roles)
	return nil
}

// ofEndedTask reports whether the intent is signed by the key of a task that has ended or is past
// its deadline. The holder of such a key has unlimited time to sign intents with it, so their
// refusals are only counted. Intents accepted before are answered.
func (d *decision) ofEndedTask() bool {
	if d.env.Signer().Role != intents.RoleTask {
		return false
	}
	t, ok := d.view.Task(d.env.Signer().Task)
	return !ok || t.Closed(d.now)
}

// refuse makes the decision a denial, or a hold if people must approve.
func (d *decision) refuse(x *intents.Refusal) {
	d.Verdict = intents.Deny
	if x.Code == intents.ApprovalRequired {
		d.Verdict = intents.Hold
	}
	d.Code, d.Pointer, d.Reason, d.PolicyIDs, d.Retryable, d.Hint = x.Code, x.Pointer, x.Reason, x.PolicyIDs, x.Retryable, x.Hint
	d.Obligations = nil
	d.violated, d.busyWith, d.after = x.Violations, x.PlanID, x.Seconds()
}

// refusal returns why it was refused.
func (d *decision) refusal() *intents.Refusal {
	return &intents.Refusal{Code: d.Code, Pointer: d.Pointer, Reason: d.Reason, PolicyIDs: d.PolicyIDs, Retryable: d.Retryable, Hint: d.Hint}
}

// asksFor is the fingerprint of the intent.
func (d *decision) asksFor() string {
	if d.fingerprint == "" {
		d.fingerprint = d.env.Fingerprint()
	}
	return d.fingerprint
}

// dispatched reports whether an executor executes the accepted intent.
func (d *decision) dispatched() bool {
	return d.duplicate == nil && d.Verdict == intents.Allow && d.row.Executor != catalog.ExecutorRouter
}

// intent returns the decided intent in the form that the state takes.
func (d *decision) intent() state.Intent { return state.IntentOf(d.env, d.roles, d.now) }

// inPlan returns the intent as far as the state needs it to find its changes to a plan.
func (d *decision) inPlan() state.Intent {
	out := state.Intent{
		Type: d.env.Type(), Context: d.env.Context(), Tenant: d.env.Principal().Tenant,
		Signer: d.env.Signer().Role, Decision: d.Decision, Now: d.now, Node: d.ofNode(), Standing: d.inputs.Standing,
	}
	if d.pin != nil {
		out.Skill = d.pin.Skill
	}
	return out
}

// ofNode reports whether the intent belongs to a node of a run.
func (d *decision) ofNode() bool {
	return d.task != nil && d.task.NodesOwn(d.env.Type(), d.row.Executor)
}

// answer is the answer about the decision alone.
func (d *decision) answer() *intents.Answer {
	a := answerOf(&d.Decision)
	a.TraceID, a.Violations, a.PlanID, a.RetryAfter = d.env.TraceID(), d.violated, d.busyWith, d.after
	return a
}

func answerOf(d *intents.Decision) *intents.Answer {
	return &intents.Answer{IntentID: d.IntentID, Decision: d, Code: d.Code, Pointer: d.Pointer, Reason: d.Reason, Hint: d.Hint}
}
