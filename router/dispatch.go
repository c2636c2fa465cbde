package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// replyGrace is how long after the deadline an executor may still answer.
const replyGrace = 2 * time.Second

// perform is stages 9 and 10. The caller going away does not stop it: what is
// committed is carried out.
//
// Crash in it: the order stays open and recovery ends it by its effect.
func (r *Router) perform(ctx context.Context, o *order) (*intents.Answer, error) {
	ctx = logging.In(ctx, o.env.TraceID())
	switch {
	case o.duplicate != nil && o.decision.Verdict == intents.Deny:
		r.countRefusal(o)
		return r.decided(o), nil // stage 6 refused it: no record, and nothing about the first order
	case o.duplicate != nil:
		a, err := r.answerDuplicate(o.duplicate, o.env.TraceID())
		if err == nil {
			a.Duplicate = true
		}
		if err == nil && a.Code == intents.OK && o.env.Type() == state.TypeErase {
			err = r.eraseFor(ctx, o) // what stayed then may go now
		}
		if err != nil {
			return nil, err
		}
		return a, nil
	case o.decision.Verdict != intents.Allow:
		r.countRefusal(o)
		return r.recorded(o)
	case o.row.Executor == catalog.ExecutorRouter:
		r.accepted(o)
		r.metrics.used(o)
		r.wipe(ctx, o)
		if err := r.eraseFor(ctx, o); err != nil {
			return nil, err
		}
		if o.settled != nil && o.settled.released != nil {
			r.dispatchAsync(ctx, o.settled.released)
		}
		return r.recorded(o)
	}
	r.accepted(o)
	failpoint.Hit(failpoint.OrderCommitted)
	r.carryOut(ctx, o)
	return r.recorded(o)
}

// carryOut is stages 9 and 10 of an accepted order, and gives its slot back. An outcome that
// cannot be written is written later: until then the order keeps its slot, and is in flight.
//
// If the process ends meanwhile the order stays open, as after a crash.
func (r *Router) carryOut(ctx context.Context, o *order) {
	ctx = clock.Lasting(ctx)
	out := r.dispatch(ctx, o)
	err := r.finish(ctx, o, out)
	if err == nil || ctx.Err() != nil {
		r.release(o)
		return
	}
	later := *o // the caller is answered meanwhile
	later.view, o.slot = r.state.View(), nil
	r.running.Go(func() {
		defer r.release(&later)
		r.finishLater(ctx, &later, out, err)
	})
}

// wipe removes the temporary files of a step that its task has finished.
// Crash before it, or a store that is down: the sweep removes them.
func (r *Router) wipe(ctx context.Context, o *order) {
	if typ := o.env.Type(); typ == state.TypePlanClose || typ == state.TypeCancel {
		r.wipeRun(ctx, o)
		return
	}
	if o.env.Type() != "step.finish" || o.task == nil || o.task.Node != "" || // later nodes of the run may read them
		o.env.StringArg("status") == "held" { // a held step goes on
		return
	}
	failpoint.Hit(failpoint.StepFinished)
	t, _ := o.view.Task(o.task.Tenant + "/" + o.env.StringArg("task_id")) // its own, or one that it has asked for
	s := storage.Scope{Tenant: t.Tenant, Plan: t.Plan, Revision: t.Revision, Step: t.Step, Ask: t.Ask}
	if err := r.cfg.Blobs.Wipe(context.WithoutCancel(ctx), s); err != nil {
		r.cfg.Log.WarnContext(ctx, "files of a finished step stay until the sweep", slog.String("plan_id", s.Plan), slog.Int("step", s.Step), slog.String("error", err.Error()))
	}
}

// wipeRun removes the temporary files of the nodes of a run that has ended.
func (r *Router) wipeRun(ctx context.Context, o *order) {
	for _, s := range r.state.RunScopes(o.env.Principal().Tenant, o.env.StringArg("plan_id")) {
		if err := r.cfg.Blobs.Wipe(context.WithoutCancel(ctx), s); err != nil {
			r.cfg.Log.WarnContext(ctx, "files of a run stay until the sweep", slog.String("plan_id", s.Plan), slog.Int("step", s.Step), slog.String("error", err.Error()))
		}
	}
}

// dispatch is stage 9: ticket, inputs, one request, one report.
func (r *Router) dispatch(ctx context.Context, o *order) intents.Outcome {
	if o.facts.Breaker == intents.BreakerRefuses {
		return r.unsent(o)
	}
	began, started := time.Now(), r.cfg.Now()
	out := intents.Outcome{Of: o.position, Attempt: o.attempt}
	ctx, span := tracing.StartIn(ctx, o.env.TraceID(), "dispatch "+o.env.Type(), tracing.Type.String(o.env.Type()), tracing.Order.String(o.env.ID()), tracing.Position.Int64(o.position), tracing.Attempt.Int(o.attempt))
	defer span.End()
	report, err := r.request(ctx, o)
	r.took(ctx, "dispatch", began)
	out.MS = r.cfg.Now().Sub(started).Milliseconds()
	if err == nil {
		// Facts of a refused report count too: the executor has run.
		out.Facts = r.sound(o, report.Facts)
		if intents.Keepable(o.decision.Obligations) {
			out.Lines = intents.Bounded(o.row.Executor, report.Lines)
		}
		if o.inPlan().BreakerName() != "" {
			out.Transport = report.Transport
		}
		r.metrics.reported(o, out.Facts)
		err = r.checked(o, report)
	}
	if err == nil {
		out.Status, out.Code, out.Result = report.Status, intents.OK, report.Result
		if report.Status != intents.Done {
			out.Code, out.Reason, out.Retryable = report.Code, clip(report.Reason), report.Retryable
		}
		return out
	}
	return r.failed(o, out, err)
}

// failed is the outcome of an order without a valid report. A once order has failed
// only if no executor listened or its executor reported the failure. If an earlier
// attempt was dispatched, that no executor listens now proves nothing.
func (r *Router) failed(o *order, out intents.Outcome, err error) intents.Outcome {
	var refusal *intents.Refusal
	if !errors.As(err, &refusal) {
		refusal = intents.Refuse(intents.ExecutorFailed, "", "the executor's answer is not valid")
		r.cfg.Log.Error("dispatch", slog.String("intent_id", o.env.ID()), slog.String("trace_id", o.env.TraceID()), slog.String("type", o.env.Type()), slog.String("error", err.Error()))
	}
	out.Status, out.Code, out.Reason, out.Retryable = intents.Failed, refusal.Code, refusal.Reason, refusal.Retryable
	undelivered := refusal.Code == intents.DispatchUnavailable || refusal.Code == intents.MalformedArgs
	if errors.As(err, new(revokedError)) {
		undelivered, out.Retryable = true, false
	}
	again := undelivered && o.attempt > 1 // what an earlier attempt did is not known
	if again || o.decision.Effect == string(catalog.Once) && !undelivered {
		out.Status, out.Code, out.Retryable = intents.StatusIndetermined, intents.Indeterminate, false
	}
	if again {
		out.Reason = "what an earlier attempt did is not known: " + out.Reason
	}
	return out
}

// request sends the order to its executor and waits for the report.
func (r *Router) request(ctx context.Context, o *order) (intents.Report, error) {
	var report intents.Report
	o.unheard = false
	inputs, err := r.inputs(ctx, o)
	if err != nil {
		return report, err
	}
	deadline := r.cfg.Now().Add(o.row.Run()).UTC()
	ticket := intents.Ticket{
		Issuer: r.state.Origin(), IntentID: o.env.ID(), Type: o.env.Type(), Executor: o.row.Executor,
		Actor: o.env.Principal(), Position: o.position, Attempt: o.attempt, Deadline: deadline,
		Obligations: o.decision.Obligations, PolicyDigest: o.decision.PolicyDigest, Inputs: inputs,
	}
	ticket.Actor.Roles = o.roles
	if err := r.claims(ctx, o, &ticket); err != nil {
		return report, err
	}
	token, err := intents.IssueTicket(r.cfg.Key, ticket)
	if err != nil {
		return report, err
	}
	msg, err := intents.MarshalPlain(intents.Dispatch{Header: o.env.Header(), Payload: o.env.Canonical(), Ticket: token})
	if err != nil {
		return report, err
	}
	if err := r.revokedSince(o); err != nil {
		return report, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.row.Run()+replyGrace)
	defer cancel()
	failpoint.Hit(failpoint.OrderTicketed)
	reply, err := r.cfg.Bus.Request(ctx, bus.Exec(o.env.Type()), msg)
	o.unheard = errors.Is(err, bus.ErrNoResponders)
	failpoint.Hit(failpoint.OrderReported)
	switch {
	case o.unheard:
		return report, intents.Refuse(intents.DispatchUnavailable, "", "no executor listens for "+o.env.Type())
	case errors.Is(err, context.DeadlineExceeded):
		return report, intents.Refuse(intents.ExecutorTimeout, "", "the executor did not answer before the deadline")
	case err != nil:
		return report, fmt.Errorf("request: %w", err)
	}
	return report, readReport(reply, &report)
}

// readReport reads an executor's report, of which no member may stand twice, also not in another
// case. What is within a result, a fact or a line is judged with it.
func readReport(raw []byte, report *intents.Report) error {
	var members map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &members), json.Unmarshal(raw, report)); err != nil {
		return err
	}
	read := map[string]bool{}
	for name := range members {
		folded := strings.ToLower(strings.ToUpper(name)) // as encoding/json reads names
		if read[folded] {
			return intents.Refuse(intents.ExecutorFailed, "/"+folded, "the executor's report can be read in two ways: a member stands twice")
		}
		read[folded] = true
	}
	var refusal *intents.Refusal
	if errors.As(intents.Unambiguous(raw), &refusal) && strings.Count(refusal.Pointer, "/") == 1 {
		return intents.Refuse(intents.ExecutorFailed, refusal.Pointer, "the executor's report can be read in two ways: "+refusal.Reason)
	}
	return nil
}

// revokedError is why an accepted order is not handed to its executor.
type revokedError struct{ *intents.Refusal }

func (e revokedError) Unwrap() error { return e.Refusal }

// revokedSince asks again what may have changed since the order was accepted:
// its signer's key, its grant, the key that issued it, and whether its API key and
// user are there still. What is revoked has nothing carried out from that position on.
func (r *Router) revokedSince(o *order) error {
	v := r.state.View()
	_, err := v.Key(o.env.Signer().KID)
	if token := o.env.GrantToken(); err == nil && token != "" {
		if _, err = v.Key(intents.SignerOf(token)); err == nil {
			err = revoked(o.env, v)
		}
		if g := o.env.Grant(); err == nil && g != nil {
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

// claims adds what the order's task may touch, and the skills' pins.
func (r *Router) claims(ctx context.Context, o *order, t *intents.Ticket) error {
	if o.task != nil {
		spec, err := intents.MarshalPlain(struct { // in the order that is signed
			Reason string `json:"reason"`
			Shape  string `json:"shape"`
		}{o.task.Spec.ReturnSpec.Reason, o.task.Spec.ReturnSpec.Shape})
		if err != nil {
			return err
		}
		t.Scope = &intents.TaskScopeClaim{
			Ask: o.task.Ask, Task: o.task.ID, Plan: o.task.Plan, Revision: o.task.Revision, Step: o.task.Step,
			Skills: o.task.Spec.Skills, ReturnSpec: spec, Deadline: o.task.Deadline,
		}
		if in := o.task.Inputs; len(in) == 1 {
			t.Scope.InputKey = in[0]
		} else {
			t.Scope.InputKeys = in
		}
	}
	if o.row.Executor == "plans" || o.row.Executor == "logs" {
		caps, _ := o.view.Capabilities(o.env.Principal().Tenant, o.roles)
		t.Oversees = state.Oversees(caps)
	}
	if g := o.env.Grant(); o.env.Type() == typeLogs && g != nil {
		t.Client = g.Act.Client
	}
	switch {
	case o.pin != nil:
		pin, err := r.located(ctx, *o.pin)
		if err != nil {
			return err
		}
		t.Pins = []intents.Pin{pin}
		t.Types = o.view.PayloadTypes(o.env.Principal().Tenant)
		if o.pin.CacheSeconds > 0 {
			t.Erasures = r.state.Erasures()
		}
		if r.cfg.Rate != nil {
			if t.RPM, err = r.cfg.Rate(ctx, o.env.Principal().Tenant, o.pin.Skill); err != nil {
				r.cfg.Log.ErrorContext(ctx, "the rate of a skill cannot be read", slog.String("skill", o.pin.Skill), slog.String("error", err.Error()))
				return intents.Refuse(intents.DispatchUnavailable, "", "the rate of the skill cannot be read")
			}
		}
	case o.env.Type() == "skill.find", o.env.Type() == "skill.load":
		t.Pins = slices.DeleteFunc(o.view.Pins(o.env.Principal().Tenant), func(p intents.Pin) bool { return !o.view.KeyGives(o.env.Grant(), p.Skill) })
		if o.task != nil {
			t.Pins = slices.DeleteFunc(t.Pins, func(p intents.Pin) bool { return !slices.Contains(o.task.Spec.Skills, p.Skill) })
		}
	}
	return nil
}

// checked holds a report to the type's result schema.
func (r *Router) checked(o *order, report intents.Report) error {
	// Whoever reads the result later must read what its schema was held to.
	var refusal *intents.Refusal
	if report.Result != nil && errors.As(intents.Unambiguous(report.Result), &refusal) {
		return intents.Refuse(intents.ExecutorFailed, refusal.Pointer, "the executor's result can be read in two ways: "+refusal.Reason)
	}
	switch report.Status {
	case intents.Done:
		s, err := o.row.ResultSchema()
		if err != nil {
			return err
		}
		if v := s.ValidateBytes(report.Result); len(v) > 0 {
			return intents.Refuse(intents.ExecutorFailed, v[0].Pointer, "the executor's result does not match its schema: "+v[0].Reason)
		}
		return nil
	case intents.Failed, intents.StatusIndetermined:
		switch report.Code { //nolint:exhaustive // the codes that mean no failure, then any known one
		case intents.OK, intents.InFlight, intents.ApprovalRequired: // they mean that it has not failed
		case report.Code.Info().Code:
			return nil
		}
		return intents.Refuse(intents.ExecutorFailed, "", "the executor reported a failure without a code of a failure")
	default:
		return intents.Refuse(intents.ExecutorFailed, "", "the executor's answer has no status")
	}
}

// maxReason bounds an executor's reason in bytes: it stands in records and plans.
const maxReason = 2 << 10

func clip(reason string) string {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	return reason
}

// maxFacts of one report. factIDs are the members of a fact's payload that events
// are searched by.
const maxFacts = 64

var factIDs = map[string]*regexp.Regexp{
	"skill_id": regexp.MustCompile(`^.{0,128}$`), "script_hash": regexp.MustCompile(`^sha256:[0-9a-f]{64}$`),
}

// sound leaves out facts that are no events of the order's executor. The outcome
// stands without them: what is wrong with facts undoes no effect and must not
// stop the recorder.
func (r *Router) sound(o *order, facts []intents.Fact) []intents.Fact {
	var out []intents.Fact
	for _, f := range facts {
		var payload map[string]any
		ok := len(out) < maxFacts && o.row.Reports(f.Event) && intents.Unambiguous(f.Payload) == nil && json.Unmarshal(f.Payload, &payload) == nil && payload != nil
		for name, id := range factIDs {
			if v, text := payload[name].(string); text && v != "" {
				ok = ok && id.MatchString(v)
			}
		}
		if !ok {
			r.cfg.Log.Warn("fact left out", slog.String("intent_id", o.env.ID()), slog.String("trace_id", o.env.TraceID()), slog.String("type", o.env.Type()), slog.String("executor", o.row.Executor))
			continue
		}
		out = append(out, f)
	}
	return out
}

// recordedResult is what the record keeps of a result: of a transcript its digest, of a
// stream the digest of its id, and of an artifact all but the link, since whoever reads the record must not
// open them.
func recordedResult(typ string, result json.RawMessage) json.RawMessage {
	told := result
	switch typ {
	case typeLogs:
		var r catalog.LogsStreamResult
		if json.Unmarshal(result, &r) == nil {
			told = []byte(path.Base(r.StreamURL))
		}
	case typeArtifact:
		var r catalog.ArtifactGetResult
		if json.Unmarshal(result, &r) == nil {
			r.URL = ""
			if kept, err := json.Marshal(r); err == nil {
				return kept
			}
		}
	case typeTranscript:
	default:
		return result
	}
	return json.RawMessage(`{"sha256":"` + intents.Digest(told) + `"}`)
}

// typeLogs is the type whose result is the address of a stream.
const typeLogs = "logs.stream"

// typeArtifact is the type whose result has a link that opens an artifact to whoever has it.
const typeArtifact = "artifact.get"

// Pauses between attempts to write an outcome: the first one and the longest.
const (
	finishPause    = 100 * time.Millisecond
	maxFinishPause = 5 * time.Second
)

// finishAtLast is finish until the outcome is durable: a disk that is full, or servers that are
// away, come back. If the process ends before, the order stays open, for recovery.
func (r *Router) finishAtLast(ctx context.Context, o *order, out intents.Outcome) {
	ctx = clock.Lasting(ctx)
	if err := r.finish(ctx, o, out); err != nil {
		r.finishLater(ctx, o, out, err)
	}
}

// finishLater goes on with a finish that failed.
func (r *Router) finishLater(ctx context.Context, o *order, out intents.Outcome, err error) {
	if ctx.Err() != nil {
		return
	}
	r.cfg.Log.ErrorContext(ctx, "an outcome cannot be written: it is tried again until it is; make room, or see to the journal's servers",
		slog.String("intent_id", o.env.ID()), slog.Int64("position", o.position), slog.String("error", err.Error()))
	for wait := finishPause; err != nil && clock.Sleep(ctx, wait) == nil; wait = min(2*wait, maxFinishPause) {
		err = r.finish(ctx, o, out)
	}
}

// finish is stage 10: the outcome is durable before anybody is answered. The error is why it
// was not written. An order that is left because the process ends gets no outcome, unless it
// is done.
func (r *Router) finish(ctx context.Context, o *order, out intents.Outcome) error {
	if err := ctx.Err(); err != nil && out.Status != intents.Done {
		return err
	}
	if out.Status == intents.Done && o.ofNode() {
		out.Outputs = o.view.OutputsOf(*o.task, out.Result)
		out.Facts = append(out.Facts, r.compared(ctx, o, out.Result)...)
	}
	kept := out
	if out.Result != nil {
		kept.Result = recordedResult(o.env.Type(), out.Result)
	}
	rec, err := storage.OutcomeRecord(r.cfg.Now(), kept)
	if err != nil { // what was reported is no JSON
		out = r.failed(o, intents.Outcome{Of: out.Of, Attempt: out.Attempt, MS: out.MS}, err)
		if rec, err = storage.OutcomeRecord(r.cfg.Now(), out); err != nil {
			return err
		}
	}
	_, err = r.cfg.Journal.Finish(context.WithoutCancel(ctx), o.position, o.attempt, rec, o.inPlan().OutcomeTouches(out, o.released))
	if errors.Is(err, storage.ErrFinished) {
		return nil // the first outcome wins; recorded reads it
	}
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.OrderFinished)
	o.record.outcome, o.record.out = rec.Digest(), &out
	r.metrics.finished(out.Code)
	return nil
}
