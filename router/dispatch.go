package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// replyGrace is how long after the deadline an executor may still answer.
const replyGrace = 2 * time.Second

// perform is stages 9 and 10. It continues if the caller goes away: a committed intent is executed.
//
// Crash: the intent stays open and recovery ends it by its effect.
func (r *Router) perform(ctx context.Context, x *execution) (*intents.Answer, error) {
	ctx = logging.In(ctx, x.env.TraceID())
	switch {
	case x.duplicate != nil && x.Verdict == intents.Deny:
		r.countRefusal(x)
		return x.answer(), nil // stage 6 refused it: no record, and nothing about the first intent
	case x.duplicate != nil:
		a, err := r.answerDuplicate(x.duplicate, x.env.TraceID())
		if err == nil {
			a.Duplicate = true
		}
		if err == nil && a.Code == intents.OK && (x.env.Type() == state.TypeErase || x.env.Type() == state.TypeUserErase) {
			err = r.eraseFor(ctx, x.env) // blobs that stayed then may be erasable now
		}
		if err != nil {
			return nil, err
		}
		return a, nil
	case x.Verdict != intents.Allow:
		r.countRefusal(x)
		return r.recorded(x)
	case x.row.Executor == catalog.ExecutorRouter:
		r.accepted(&x.decision)
		r.metrics.used(x.env)
		r.wipe(ctx, &x.decision)
		r.tellStopped(ctx, &x.decision)
		if err := r.eraseFor(ctx, x.env); err != nil {
			return nil, err
		}
		if x.approval != nil && x.approval.released != nil {
			r.dispatchAsync(ctx, x.approval.released)
		}
		return r.recorded(x)
	}
	r.accepted(&x.decision)
	failpoint.Hit(failpoint.IntentCommitted)
	r.carryOut(ctx, x)
	return r.recorded(x)
}

// carryOut is stages 9 and 10 of an accepted intent, and frees its slot. An outcome that cannot be
// written is written later; until then the intent keeps its slot and is in flight.
//
// If the process ends meanwhile the intent stays open, as after a crash.
func (r *Router) carryOut(ctx context.Context, x *execution) {
	ctx = clock.Lasting(ctx)
	out, _ := r.dispatch(ctx, x)
	err := r.finish(ctx, x, out)
	if err == nil || ctx.Err() != nil {
		r.leave(x)
		return
	}
	later := *x // the caller is answered meanwhile
	later.view, later.record, x.slot = r.state.View(), new(*x.record), nil
	r.running.Go(func() {
		defer r.leave(&later)
		r.finishInBackground(ctx, &later, out, err)
	})
}

// stopTime bounds the wait for the process that runs a plan.
const stopTime = time.Second

// tellStopped has the processes that run a cancelled plan, or plans that an operator has stopped, end
// their work at once, requests to models included. Without an answer no process runs it, or its next
// intent is refused.
func (r *Router) tellStopped(ctx context.Context, d *decision) {
	switch d.env.Type() {
	case state.TypeCancel:
		r.tell(ctx, bus.FindRunRequest{PlanID: d.env.StringArg("plan_id"), StoppedBy: d.env.Principal().UserID}, intents.RoleManager, intents.RoleWorkflow)
	case catalog.TypeAdminStop:
		var a catalog.AdminStop
		if json.Unmarshal(d.env.Args(), &a) != nil || a.Resume {
			return
		}
		tenant := state.TargetTenant(d.env.Principal().Tenant, a.Tenant)
		var why []string
		for _, s := range r.state.Stopped(tenant).Stops() {
			why = append(why, s.String())
		}
		for plans := range slices.Chunk(r.state.PlansToStop(tenant, a.All, a.Agents), plansAtOnce) {
			r.tell(ctx, bus.FindRunRequest{Plans: plans, Why: strings.Join(why, "; ")}, intents.RoleManager)
		}
	}
}

// plansAtOnce bounds a message.
const plansAtOnce = 4096

func (r *Router) tell(ctx context.Context, what bus.FindRunRequest, roles ...intents.Role) {
	msg, _ := json.Marshal(what) // plain data
	for _, role := range roles {
		r.running.Go(func() {
			ctx, cancel := context.WithTimeout(clock.Lasting(ctx), stopTime)
			defer cancel()
			_, _ = r.cfg.Bus.Request(ctx, bus.FindRun(string(role)), msg)
		})
	}
}

// wipe removes the temporary files of a step that its task has finished. After a crash before it,
// or if the store is down, the sweep removes them.
func (r *Router) wipe(ctx context.Context, d *decision) {
	if typ := d.env.Type(); typ == state.TypePlanClose || typ == state.TypeCancel {
		r.wipeRun(ctx, d)
		return
	}
	if d.env.Type() != "step.finish" || d.task == nil || d.task.Node != "" || // later nodes of the run may read them
		d.env.StringArg("status") == "held" { // a held step continues
		return
	}
	failpoint.Hit(failpoint.StepFinished)
	t, _ := d.view.Task(d.task.Tenant + "/" + d.env.StringArg("task_id")) // its own task, or one that it has asked for
	s := storage.Scope{Tenant: t.Tenant, Plan: t.Plan, Revision: t.Revision, Step: t.Step, Ask: t.Ask}
	if err := r.cfg.Blobs.Wipe(context.WithoutCancel(ctx), s); err != nil {
		r.cfg.Log.WarnContext(ctx, "files of a finished step stay until the sweep", slog.String("plan_id", s.Plan), slog.Int("step", s.Step), slog.String("error", err.Error()))
	}
}

// wipeRun removes the temporary files of the nodes of a run that has ended.
func (r *Router) wipeRun(ctx context.Context, d *decision) {
	for _, s := range r.state.RunScopes(d.env.Principal().Tenant, d.env.StringArg("plan_id")) {
		if err := r.cfg.Blobs.Wipe(context.WithoutCancel(ctx), s); err != nil {
			r.cfg.Log.WarnContext(ctx, "files of a run stay until the sweep", slog.String("plan_id", s.Plan), slog.Int("step", s.Step), slog.String("error", err.Error()))
		}
	}
}

// dispatch is stage 9: ticket, inputs, one request, one report. heard is false if no executor
// listens.
func (r *Router) dispatch(ctx context.Context, x *execution) (out intents.Outcome, heard bool) {
	began, started := time.Now(), r.cfg.Now()
	out = intents.Outcome{Target: x.position, Attempt: x.attempt}
	ctx, span := tracing.StartIn(ctx, x.env.TraceID(), "dispatch "+x.env.Type(), tracing.Type.String(x.env.Type()), tracing.Intent.String(x.env.ID()), tracing.Position.Int64(x.position), tracing.Attempt.Int(x.attempt))
	defer span.End()
	report, err := r.request(ctx, x)
	r.took(ctx, "dispatch", began)
	out.MS = r.cfg.Now().Sub(started).Milliseconds()
	return r.outcomeOf(ctx, x, out, report, err), !errors.As(err, new(noExecutorError))
}

// outcomeOf completes the outcome of an attempt with its executor's report, or with the reason why
// there is none.
func (r *Router) outcomeOf(ctx context.Context, x *execution, out intents.Outcome, report intents.Report, err error) intents.Outcome {
	if err == nil {
		// Events of a refused report count too: the executor has run.
		out.Events = r.sound(&x.decision, report.Events)
		if intents.Keepable(x.Obligations) {
			out.Lines = intents.BoundLines(x.row.Executor, report.Lines)
		}
		out.Sources = report.Sources
		if x.skillServer() != "" {
			out.Transport = report.Transport
			r.exchanged(ctx, x, report.Transport)
		}
		r.metrics.reported(x.row, out.Events)
		err = checked(x.row, report)
	}
	if err == nil {
		out.Status, out.Code, out.Result = report.Status, intents.OK, report.Result
		if x.env.Type() == state.TypeSkillCall && x.task != nil && x.task.APIKey == "" { // a client reads the files
			x.images = intents.BoundImages(report.Images)
		}
		if report.Status != intents.Done {
			out.Code, out.Reason, out.Retryable = report.Code, clip(report.Reason), report.Retryable
		}
		return out
	}
	return r.failed(x, out, err)
}

// failed is the outcome of an intent without a valid report. A once intent has failed only if no
// executor listened or its executor reported the failure. If an earlier attempt was dispatched, the
// absence of an executor now proves nothing.
func (r *Router) failed(x *execution, out intents.Outcome, err error) intents.Outcome {
	var refusal *intents.Refusal
	if !errors.As(err, &refusal) {
		refusal = intents.Refuse(intents.ExecutorFailed, "", "the executor's answer is not valid")
		r.cfg.Log.Error("dispatch", slog.String("intent_id", x.env.ID()), slog.String("trace_id", x.env.TraceID()), slog.String("type", x.env.Type()), slog.String("error", err.Error()))
	}
	out.Status, out.Code, out.Reason, out.Retryable = intents.Failed, refusal.Code, refusal.Reason, refusal.Retryable
	undelivered := refusal.Code == intents.DispatchUnavailable || refusal.Code == intents.MalformedArgs
	if errors.As(err, new(revokedError)) {
		undelivered, out.Retryable = true, false
	}
	again := undelivered && x.attempt > 1 // what an earlier attempt did is unknown
	if again || x.Effect == string(catalog.Once) && !undelivered {
		out.Status, out.Code, out.Retryable = intents.StatusIndetermined, intents.Indeterminate, false
	}
	if again {
		out.Reason = "what an earlier attempt did is not known: " + out.Reason
	}
	return out
}

// request sends the intent to its executor and waits for the report. One that the executor has not
// begun in time gets another ticket, for as long as it may wait for its start.
func (r *Router) request(ctx context.Context, x *execution) (intents.Report, error) {
	inputs, err := r.inputs(ctx, &x.decision)
	if err != nil {
		return intents.Report{}, err
	}
	now := r.cfg.Now().UTC()
	start, deadline := now.Add(x.row.Start()), now.Add(x.row.Run())
	for {
		report, err := r.requestOnce(ctx, x, inputs, deadline)
		if err != nil || report.Status != intents.Unstarted {
			return report, err
		}
		if !r.cfg.Now().Before(start) {
			report.Status, report.Retryable, report.Reason = intents.Failed, true, "the intent had no turn in time; nothing was started"
			return report, nil
		}
		if err := clock.Sleep(ctx, listenerPause); err != nil {
			return report, err
		}
	}
}

// requestOnce is request with one ticket.
func (r *Router) requestOnce(ctx context.Context, x *execution, inputs []intents.Input, deadline time.Time) (intents.Report, error) {
	var report intents.Report
	issued := r.cfg.Now() // a pause after it makes the ticket no younger
	ticket := intents.Ticket{
		Issuer: r.state.Origin(), IntentID: x.env.ID(), Type: x.env.Type(), Executor: x.row.Executor,
		Actor: x.env.Principal(), Position: x.position, Attempt: x.attempt, BeginBy: issued.Add(intents.TicketLife).UTC(), Deadline: deadline,
		Obligations: x.Obligations, PolicyDigest: x.PolicyDigest, Inputs: inputs,
	}
	ticket.Actor.Roles = x.roles
	if err := r.claims(ctx, &x.decision, &ticket); err != nil {
		return report, err
	}
	if !r.decides() { // nothing is begun in another router's term
		return intents.Report{Status: intents.Unstarted, Code: intents.DispatchUnavailable}, nil
	}
	token, err := intents.IssueTicket(r.cfg.Key, ticket)
	if err != nil {
		return report, err
	}
	msg := (&intents.Dispatch{Header: x.env.Header(), Payload: x.env.Canonical(), Ticket: token}).Encode()
	if err := r.revokedSince(x.env); err != nil {
		return report, err
	}
	late, cancel := context.WithTimeout(ctx, deadline.Sub(issued)+replyGrace)
	defer cancel()
	failpoint.Hit(failpoint.IntentTicketed)
	reply, err := r.reportOf(late, x, msg)
	failpoint.Hit(failpoint.IntentReported)
	switch {
	case errors.Is(err, bus.ErrNoResponders):
		return report, noExecutorError{intents.Refuse(intents.DispatchUnavailable, "", "no executor listens for "+x.env.Type())}
	case err == nil:
		return report, readReport(reply, &report)
	case ctx.Err() != nil:
		return report, fmt.Errorf("request: %w", err)
	}
	if errors.Is(err, errLost) {
		return report, errLost
	}
	if kept, known := r.keptReport(ctx, x, 0, r.unknownReplies()); known { // the answer was lost
		return report, readReport(kept, &report)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return report, intents.Refuse(intents.ExecutorTimeout, "", "the executor did not answer before the deadline")
	}
	return report, fmt.Errorf("request: %w", err)
}

// noExecutorError is the refusal of an intent for which no executor listens.
type noExecutorError struct{ *intents.Refusal }

func (e noExecutorError) Unwrap() error { return e.Refusal }

// revokedError is the reason why an accepted intent is not dispatched.
type revokedError struct{ *intents.Refusal }

func (e revokedError) Unwrap() error { return e.Refusal }

// revokedSince checks again what may have changed since the intent was accepted: its signer's key,
// its grant, the key that issued the grant, and whether its API key and user still exist. After a
// revocation's position nothing is dispatched for what it revoked.
func (r *Router) revokedSince(env *intents.Envelope) error {
	v := r.state.View()
	_, err := v.Key(env.Signer().KID)
	if err == nil && env.GrantToken() != "" {
		if _, err = v.Key(env.GrantSigner()); err == nil {
			err = revoked(env, v)
		}
		if g := env.Grant(); err == nil && g != nil {
			if _, disabled := v.RolesNow(g); disabled {
				err = state.ErrDisabled()
			}
		}
	}
	var refusal *intents.Refusal
	if errors.As(err, &refusal) {
		return revokedError{intents.Refuse(refusal.Code, refusal.Pointer, "revoked after it was accepted: it is not carried out any more")}
	}
	return err
}

// claims adds what the intent's task may access, and the skills' pins.
func (r *Router) claims(ctx context.Context, d *decision, t *intents.Ticket) error {
	if !d.row.Vendor() {
		t.Key = keyOf(d.env)
	}
	t.Sources = r.stored(d)
	if d.task != nil {
		spec, err := intents.MarshalPlain(struct { // in the intent that is signed
			Reason string `json:"reason"`
			Shape  string `json:"shape"`
		}{d.task.Spec.ReturnSpec.Reason, d.task.Spec.ReturnSpec.Shape})
		if err != nil {
			return err
		}
		t.Scope = &intents.TaskScopeClaim{
			Ask: d.task.Ask, Task: d.task.ID, Plan: d.task.Plan, Revision: d.task.Revision, Step: d.task.Step,
			Skills: d.task.Spec.Skills, ReturnSpec: spec, Deadline: d.task.Deadline,
		}
		if in := d.task.Inputs; len(in) == 1 {
			t.Scope.InputKey = in[0]
		} else {
			t.Scope.InputKeys = in
		}
	}
	if d.row.Executor == "logs" {
		caps, _ := d.view.Capabilities(d.env.Principal().Tenant, d.roles)
		t.Oversees = state.Oversees(caps)
	}
	if g := d.env.Grant(); (d.env.Type() == typeLogs || d.env.Type() == typeArtifact) && g != nil {
		t.Client = g.Act.Client
	}
	switch {
	case d.pin != nil:
		pin, err := r.located(ctx, *d.pin)
		if err != nil {
			return err
		}
		t.Pins = []intents.Pin{pin}
		t.Types = d.view.PayloadTypes(d.env.Principal().Tenant)
		if d.pin.CacheSeconds > 0 {
			t.Erasures = r.state.Erasures()
		}
		if r.cfg.Rate != nil {
			if t.RPM, err = r.cfg.Rate(ctx, d.env.Principal().Tenant, d.pin.Skill); err != nil {
				r.cfg.Log.ErrorContext(ctx, "the rate of a skill cannot be read", slog.String("skill", d.pin.Skill), slog.String("error", err.Error()))
				return intents.Refuse(intents.DispatchUnavailable, "", "the rate of the skill cannot be read")
			}
		}
	case d.env.Type() == "skill.find", d.env.Type() == "skill.load":
		t.Pins = slices.DeleteFunc(d.view.Pins(d.env.Principal().Tenant), func(p intents.Pin) bool { return !d.view.KeyGives(d.env.Grant(), p.Skill) })
		if d.task != nil {
			t.Pins = slices.DeleteFunc(t.Pins, func(p intents.Pin) bool { return !slices.Contains(d.task.Spec.Skills, p.Skill) })
		}
	}
	return nil
}
