package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
)

// tool is a tool of an agent.
type tool struct {
	model.Tool
	check *schemas.Schema // of the arguments; nil: checked where the call is executed
	// once: its calls have irreversible effects, so they run in sequence.
	once bool
	// changes: its calls change something.
	changes bool
	// output: a successful call ends the run.
	output bool
	// handover: a call ends the run; a task makes it.
	handover bool
	// lenient: members that the tool does not know are dropped (lenient.go).
	lenient bool
	// finishes: the tool takes the member finish (finish.go).
	finishes bool
	// asks, if set, returns the agent that a call asks.
	asks func(args json.RawMessage) string
	// usable, if set, reports whether the tool is of use yet.
	usable func() bool
	// call executes one call. Its result is plain data. label names that result for the model. A
	// *mistake, and an intent that was refused because of its content, are reported to the model;
	// any other error ends the run.
	call func(ctx context.Context, label string, args json.RawMessage) (any, error)
}

// newTool compiles a tool's schema, which is one of this package.
func newTool(t tool) *tool {
	check, err := schemas.Compile(t.Schema)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", t.Name, err))
	}
	t.check, t.lenient, t.Schema = check, true, withoutBounds(t.Schema)
	return &t
}

// mistake is a call that cannot be executed as the model wrote it.
type mistake struct{ violations []string }

func (e *mistake) Error() string { return strings.Join(e.violations, "; ") }

func mistaken(format string, a ...any) error { return &mistake{[]string{fmt.Sprintf(format, a...)}} }

// outputError ends a run whose output was wrong after the last correction.
type outputError struct{ wrong *mistake }

func (e *outputError) Error() string { return e.wrong.violations[0] }

// carryOut executes the calls of one reply and answers each of them, in their order. Calls
// without a lasting effect run concurrently; the others in sequence; agents are asked
// concurrently with all of them, up to the agent's cap; an output waits for all, and only the
// first one counts. ended reports that an output ended the run.
func (l *loop) carryOut(ctx context.Context, calls []model.Call) (ended bool, err error) {
	l.replies++
	end := l.working()
	defer end()
	results, errs := make([]any, len(calls)), make([]error, len(calls))
	prepared := make([]func(), len(calls))
	var stop error // of a call that was to end the step: the only one
	var together, inTurn, outputs, asks []int
	for i, c := range calls {
		t, args, finish, err := l.prepare(c)
		if err != nil {
			errs[i] = err
			continue
		}
		if t.asks != nil && len(asks) == l.agent.Limits.FanOut {
			if len(l.dropped) < maxDropped {
				l.dropped = append(l.dropped, t.asks(args))
			}
			errs[i] = mistaken("not_executed: at most %d agents are asked at once", len(asks))
			continue
		}
		label := ""
		if !t.output { // whose result nobody reads
			l.labels++
			label = fmt.Sprintf("r%d", l.labels)
		}
		ctx := context.WithValue(atCall(ctx, fmt.Sprintf("%d.%d", l.replies, i)), toolKey{}, t.Name)
		prepared[i] = func() {
			ctx, span := tracing.Start(ctx, "execute_tool "+t.Name, tracing.Operation.String("execute_tool"), tracing.Tool.String(t.Name), tracing.Agent.String(l.agent.Name), tracing.Action.String(t.Name), tracing.Step.Int(l.step))
			defer span.End()
			ctx, failed := logging.By(ctx, l.agent.Name, t.Name), ""
			results[i], errs[i] = t.call(ctx, label, args)
			if errs[i] == nil && finish && len(calls) == 1 {
				results[i], stop = l.finish(ctx, results[i])
			}
			if errs[i] != nil {
				failed = string(cmp.Or(codeOf(errs[i]), "call"))
				span.SetAttributes(tracing.Error.String(failed))
			}
			l.log.InfoContext(ctx, "agent.action", slog.Int("step", l.step), slog.String("error", failed))
		}
		switch {
		case t.output:
			outputs = append(outputs, i)
		case t.asks != nil:
			asks = append(asks, i)
		case t.once:
			inTurn = append(inTurn, i)
		default:
			together = append(together, i)
		}
	}
	l.fanOut = max(l.fanOut, len(asks))
	var asking sync.WaitGroup
	for _, i := range asks {
		asking.Go(prepared[i])
	}
	var g errgroup.Group // the functions report errors in errs
	g.SetLimit(sideBySide)
	g.Go(func() error {
		for _, i := range inTurn {
			if errs[i] = l.stopped(errs, inTurn); errs[i] == nil {
				prepared[i]()
			}
		}
		return nil
	})
	for _, i := range together {
		g.Go(func() error { prepared[i](); return nil })
	}
	_ = g.Wait()
	asking.Wait()
	for n, i := range outputs {
		if n > 0 || cmp.Or(fatal(errs), held(errs)) != nil {
			errs[i] = errNotExecuted
			continue
		}
		prepared[i]()
		ended = errs[i] == nil
	}
	for i, c := range calls {
		l.answer(c, results[i], errs[i])
		l.note(c, errs[i])
	}
	l.showImages()
	l.noteFailures(calls, errs)
	if !ended { // nor is an answer whose call was not accepted
		l.withdraw()
	}
	if err := l.corrected(calls, errs); err != nil {
		return false, err
	}
	return ended || l.over != nil && l.over(), cmp.Or(fatal(errs), held(errs), stop)
}

// corrected counts outputs that were wrong; the error ends the run.
func (l *loop) corrected(calls []model.Call, errs []error) error {
	for i, c := range calls {
		var wrong *mistake
		if !errors.As(errs[i], &wrong) || wrong == errNotExecuted || !l.isOutput(c.Name) {
			continue
		}
		if l.mistaken++; l.mistaken > corrections {
			return &outputError{wrong}
		}
	}
	return nil
}

func (l *loop) isOutput(name string) bool {
	return slices.ContainsFunc(l.tools, func(t *tool) bool { return t.output && t.Name == name })
}

// errNotExecuted answers a call that was not executed because of another call of the same reply.
var errNotExecuted = &mistake{[]string{"not_executed: another call of this reply came first"}}

// stopped returns why the next call with an effect is not begun: one before it ends the run, or
// its end is unknown.
func (l *loop) stopped(errs []error, inTurn []int) error {
	for _, i := range inTurn {
		if fatal(errs[i:i+1]) != nil || codeOf(errs[i]) == intents.Indeterminate {
			return errNotExecuted
		}
	}
	return nil
}

// prepare finds the tool of a call and checks its arguments.
func (l *loop) prepare(c model.Call) (t *tool, args json.RawMessage, finish bool, err error) {
	for _, t = range l.offered {
		if t.Name != c.Name {
			continue
		}
		args = json.RawMessage(strings.TrimSpace(c.Arguments))
		if len(args) == 0 {
			args = json.RawMessage(`{}`)
		}
		if !json.Valid(args) || args[0] != '{' {
			return nil, nil, false, mistaken("the arguments are not one JSON object")
		}
		if refused := (*intents.Refusal)(nil); errors.As(canonical(args), &refused) {
			return nil, nil, false, unsignable(refused)
		}
		if t.finishes {
			args, finish = takeFinish(args)
		}
		if t.lenient && t.check != nil {
			var dropped []string
			if args, dropped = withoutUnknown(t.check, args); len(dropped) > 0 {
				l.dropArgs(c.ID, dropped)
			}
		}
		if t.check != nil {
			if wrong := violations(t.check, args); len(wrong) > 0 {
				return nil, nil, false, &mistake{wrong}
			}
		}
		return t, args, finish, nil
	}
	return nil, nil, false, mistaken("there is no tool %q", c.Name)
}

func canonical(args []byte) error {
	_, err := intents.Canonical(args)
	return err
}

// unsignable explains to a model why its content can be in no intent.
func unsignable(r *intents.Refusal) *mistake {
	return &mistake{[]string{r.Pointer + ": " + r.Reason, "write each member once, numbers with at most 15 digits (a longer one as a string, where the schema takes that), and whole characters"}}
}

// maxViolations bounds the violations that a model receives.
const maxViolations = 10

// violations lists the errors of a document, as "pointer: reason".
func violations(s *schemas.Schema, doc []byte) []string {
	var found []string
	for _, v := range s.ValidateBytes(doc) {
		if len(found) < maxViolations {
			found = append(found, v.Pointer+": "+v.Reason)
		}
	}
	return found
}

// answer returns the result of a call to the model.
func (l *loop) answer(c model.Call, result any, err error) {
	var wrong *mistake
	var refused *IntentError
	switch {
	case errors.As(err, &wrong):
		result = map[string]any{"violations": wrong.violations}
	case errors.As(err, &refused) && refused.Answer.Code == intents.ApprovalRequired:
		result = map[string]any{"status": "held", "reason": failureText(refused)}
	case errors.As(err, &refused) && l.isChild && noData(refused.Answer.Code):
		l.noData++
		result = map[string]any{"status": "error", "reason": "data unavailable: " + failureText(refused)}
	case errors.As(err, &refused):
		wrong := map[string]any{"code": refused.Answer.Code, "reason": failureText(refused)}
		if after := waitOf(refused.Answer); after > 0 {
			wrong["retry_after_sec"] = after
		}
		if visible.IsCut(failureText(refused), maxFailureText) {
			wrong["more"] = true
		}
		result = map[string]any{"error": wrong}
	case err != nil:
		result = map[string]any{"error": map[string]any{"reason": plain(err)}}
	}
	doc := compact(result)
	var notes []string
	if dropped := l.odd[c.ID]; len(dropped) > 0 {
		notes = append(notes, c.Name+" does not know, and did not get: "+strings.Join(dropped, ", "))
	}
	if suspicious(string(doc)) {
		notes = append(notes, noteResult)
		l.mark("result")
	}
	if len(notes) > 0 {
		doc = noted(doc, strings.Join(notes, " "))
	}
	l.req.Messages = append(l.req.Messages, model.Message{Role: model.RoleTool, CallID: c.ID, Text: string(doc)})
}

// fatal returns the first error that ends a run.
func fatal(errs []error) error {
	for _, err := range errs {
		var wrong *mistake
		if err != nil && !errors.As(err, &wrong) && !refusedTellably(err) {
			return err
		}
	}
	return nil
}

// reportable reports whether a code is about one call, so that the model receives it and may try
// something else. Other codes end the run: those about the task itself, which can sign no more
// intents (its key, its grant, its plan), and those that only a defect of ours causes.
func reportable(c intents.Code) bool {
	switch c {
	case intents.OK, intents.SignatureInvalid, intents.KeyUnknown, intents.KeyRevoked, intents.GrantInvalid, intents.UnknownIntent, intents.KeyRole,
		intents.ExpiredTTL, intents.NotYetValid, intents.Changed, intents.ContractViolation, intents.Cancelled, intents.Unauthorized, intents.Internal:
		return false
	default:
		return true
	}
}

// passes reports whether a refusal ends by itself: a model is told when, and no run ends with it.
func passes(c intents.Code) bool {
	return c == intents.RateLimited || c == intents.Overloaded || c == intents.MemoryLock
}

// waitOf returns after how many seconds a call may be made again; 0: that is not known.
func waitOf(a *intents.Answer) int {
	if a.RetryAfter == 0 && (a.Code == intents.Overloaded || a.Code == intents.MemoryLock) {
		return 1
	}
	return a.RetryAfter
}

// lasting does what no model can do later: a refusal that passes is waited for until ctx ends.
func (c Config) lasting(ctx context.Context, do func() error) error {
	for {
		err := do()
		refused, ok := errors.AsType[*IntentError](err)
		if !ok || !passes(refused.Answer.Code) || waitOf(refused.Answer) == 0 {
			return err
		}
		select {
		case <-c.after(time.Duration(waitOf(refused.Answer)) * time.Second):
		case <-ctx.Done():
			return err
		}
	}
}

// failureText explains why an intent was refused or failed: the reason, and the text of the
// skill, the script or a schema.
func failureText(e *IntentError) string {
	text := e.Answer.Reason
	o := e.Answer.Outcome
	if o == nil || len(o.Result) == 0 {
		return visible.Cut(text, maxFailureText)
	}
	var detail struct {
		Error      string              `json:"error"`
		Violations []schemas.Violation `json:"violations"`
		Changes    string              `json:"changes"` // that somebody has requested; the reason has them
	}
	if json.Unmarshal(o.Result, &detail) == nil && (detail.Error+detail.Changes != "" || len(detail.Violations) > 0) {
		if detail.Error != "" {
			text += ": " + detail.Error
		}
		for _, v := range detail.Violations {
			text += "; " + v.Pointer + " " + v.Reason
		}
		return visible.Cut(text, maxFailureText)
	}
	return visible.Cut(text+"\n"+string(o.Result), maxFailureText) // such as a traceback
}

// maxFailureText bounds the description of one failure for a model, in bytes.
const maxFailureText = 4000
