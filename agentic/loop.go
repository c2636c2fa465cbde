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

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/schemas"
)

// loop runs one agent: it asks the model, carries out the calls of its reply, and asks
// again with their results, until one of the agent's outputs ends it. A model's reply
// has no effect by itself: each call is checked here, and what it does is an order,
// which the router judges.
type loop struct {
	model model.Model
	log   *slog.Logger
	agent *agents.Agent
	req   model.Request // with the messages so far
	tools []*tool
	on    func(model.Event) // for text that the user may see while it comes; or nil
	text  bool              // a reply without calls ends the run with its text

	offered  []*tool // what may be called now
	used     []catalog.Usage
	before   int // tokens that earlier tasks used
	requests int
	mistaken int          // calls of outputs that could not be carried out
	labels   int          // results that have a label
	replies  int          // that had calls, those of earlier tasks too
	recalled int          // index of the message of an earlier task's latest reply
	short    map[int]bool // indices of messages whose result was shortened

	now  func() time.Time // for busy; nil: time.Now
	busy time.Duration    // that the model and the calls took
	step int              // of the plan, for those who watch; 0: none

	asked   bool     // by another agent, which tells the user what is missing
	noData  int      // calls that could not have what they asked for
	fanOut  int      // the most agents that one reply asked
	waits   string   // which calls of the last reply wait for people, and which do not
	unmade  bool     // some of them were neither made nor wait
	dropped []string // agents that were not asked, being one too many of a reply
}

// tool is what an agent may call.
type tool struct {
	model.Tool
	check *schemas.Schema // of the arguments; nil: whoever carries the call out checks them
	// once: its calls have effects that cannot be taken back, so one follows the other.
	once bool
	// output: a call that succeeds ends the run.
	output bool
	// asks, where it is set, says which agent a call asks.
	asks func(args json.RawMessage) string
	// later, where it is set, says whether the tool is of any use by now.
	later func() bool
	// call carries one call out. Its result is plain data. label names that result to
	// the model. A *mistake, and an order that was refused for what it asks, are told
	// to the model; any other error ends the run.
	call func(ctx context.Context, label string, args json.RawMessage) (any, error)
}

// newTool compiles a tool's schema, which is one of this package.
func newTool(t tool) *tool {
	check, err := schemas.Compile(t.Schema)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", t.Name, err))
	}
	t.check = check
	return &t
}

// mistake is a call that cannot be carried out as the model wrote it.
type mistake struct{ violations []string }

func (e *mistake) Error() string { return strings.Join(e.violations, "; ") }

func mistaken(format string, a ...any) error { return &mistake{[]string{fmt.Sprintf(format, a...)}} }

// Errors that end a run without an output.
var (
	errNoOutput = errors.New("the model did not use its tools")
	errLimit    = errors.New("the limit of the agent was reached")
)

const (
	sideBySide  = 8   // calls of one reply that run at once
	corrections = 2   // how often an output, or a reply without a call, is corrected
	maxDropped  = 100 // asks beyond the cap that are told
)

// outputError ends a run whose output was wrong once more than it is corrected.
type outputError struct{ wrong *mistake }

func (e *outputError) Error() string { return e.wrong.violations[0] }

// run asks until the agent ends. For an agent that ends with a text this is the result.
func (l *loop) run(ctx context.Context) (string, error) {
	ctx = logging.By(ctx, l.agent.Name, "run")
	ctx, span := tracing.Start(ctx, "invoke_agent "+l.agent.Name, tracing.Operation.String("invoke_agent"), tracing.Agent.String(l.agent.Name))
	defer span.End()
	l.read()
	began, missed := time.Now(), 0
	for l.requests < l.agent.Limits.Requests && l.tokens() < l.agent.Limits.Tokens && time.Since(began) < l.agent.Limits.Time() {
		reply, err := l.respond(ctx, l.tools)
		switch {
		case err != nil:
			return "", err
		case len(l.tools) == 0, l.text && len(reply.Calls) == 0:
			return reply.Text, nil
		case len(reply.Calls) == 0 && missed == corrections:
			return "", errNoOutput
		case len(reply.Calls) == 0:
			missed++
			l.say("Call one of your tools. End with " + l.outputs() + ".")
			continue
		}
		if l.on != nil && reply.Text != "" { // said on the way: no part of the answer
			l.on(model.Event{Reset: true})
		}
		if ended, err := l.carryOut(ctx, reply.Calls); ended || err != nil {
			return "", err
		}
	}
	return l.last(ctx)
}

// last gives an agent that has reached its limits one more request, with its outputs
// alone, so that it can say what was done and what was not.
func (l *loop) last(ctx context.Context) (string, error) {
	end := "Answer now"
	if !l.text {
		end = "End now with " + l.outputs()
	}
	l.say("No more work is possible: your limit is reached. " + end + ": what was done, and what was not.")
	reply, err := l.respond(ctx, l.outputTools())
	switch {
	case err != nil:
		return "", err
	case l.text && strings.TrimSpace(reply.Text) != "":
		return reply.Text, nil
	}
	if ended, err := l.carryOut(ctx, reply.Calls); ended || err != nil {
		return "", err
	}
	return "", errLimit
}

func (l *loop) offer(tools []*tool) {
	l.offered, l.req.Tools = nil, nil
	for _, t := range tools {
		if t.later == nil || t.later() {
			l.offered, l.req.Tools = append(l.offered, t), append(l.req.Tools, t.Tool)
		}
	}
	if len(l.offered) > 0 && !l.text {
		l.req.Choice = model.ChoiceRequired
	}
}

func (l *loop) outputTools() []*tool {
	return slices.DeleteFunc(slices.Clone(l.tools), func(t *tool) bool { return !t.output })
}

func (l *loop) outputs() string {
	var names []string
	for _, t := range l.outputTools() {
		names = append(names, "`"+t.Name+"`")
	}
	return strings.Join(names, " or ")
}

func (l *loop) say(text string) {
	l.req.Messages = append(l.req.Messages, model.Message{Role: model.RoleUser, Text: text})
}

// tokens that the run has used, and tasks before it.
func (l *loop) tokens() int { return l.before + catalog.Tokens(l.used) }

// working begins what counts as busy, until end is called.
func (l *loop) working() (end func()) {
	now := l.now
	if now == nil {
		now = time.Now
	}
	began := now()
	return func() { l.busy += now().Sub(began) }
}

func (l *loop) request(ctx context.Context) (*model.Response, error) {
	l.requests++
	ctx, span := tracing.Start(ctx, "chat "+l.model.Name(), tracing.Operation.String("chat"), tracing.Agent.String(l.agent.Name), tracing.Model.String(l.model.Name()))
	defer span.End()
	end := l.working()
	defer end()
	reply, err := l.model.Respond(ctx, l.req, l.on)
	if err != nil {
		span.SetAttributes(tracing.Error.String("model"))
	}
	if reply != nil {
		span.SetAttributes(tracing.InputTokens.Int(reply.Usage.InputTokens), tracing.OutputTokens.Int(reply.Usage.OutputTokens))
		for _, a := range append(slices.Clone(reply.Failed), model.Attempt{Model: reply.Model, Usage: reply.Usage}) {
			l.used = catalog.AddUsage(l.used, catalog.Usage{
				Agent: l.agent.Name, Model: cmp.Or(a.Model, l.model.Name()), Calls: 1,
				InputTokens: a.Usage.InputTokens, OutputTokens: a.Usage.OutputTokens, LatencyMS: (a.Usage.Latency + time.Millisecond - 1).Milliseconds(), // what took some time took no less than one
			})
		}
	}
	return reply, err
}

// carryOut carries the calls of one reply out and answers each of them, in their
// order. Calls without an effect that lasts run side by side; the others one after
// the other; agents are asked beside them all, no more than the agent may; an output
// waits for all, and only the first one counts. ended says that an output ended the run.
func (l *loop) carryOut(ctx context.Context, calls []model.Call) (ended bool, err error) {
	l.replies++
	end := l.working()
	defer end()
	results, errs := make([]any, len(calls)), make([]error, len(calls))
	prepared := make([]func(), len(calls))
	var together, inTurn, outputs, asks []int
	for i, c := range calls {
		t, args, err := l.prepare(c)
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
		l.labels++
		label := fmt.Sprintf("r%d", l.labels)
		ctx := atCall(ctx, fmt.Sprintf("%d.%d", l.replies, i))
		prepared[i] = func() {
			ctx, span := tracing.Start(ctx, "execute_tool "+t.Name, tracing.Operation.String("execute_tool"), tracing.Tool.String(t.Name), tracing.Agent.String(l.agent.Name), tracing.Action.String(t.Name), tracing.Step.Int(l.step))
			defer span.End()
			ctx, failed := logging.By(ctx, l.agent.Name, t.Name), ""
			if results[i], errs[i] = t.call(ctx, label, args); errs[i] != nil {
				failed = kind(errs[i])
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
	var g errgroup.Group // whose functions fail by errs
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
	}
	if err := l.corrected(calls, errs); err != nil {
		return false, err
	}
	if held(errs) != nil {
		l.waits, l.unmade = l.tally(calls, errs)
	}
	return ended, cmp.Or(fatal(errs), held(errs))
}

// kind of the error of a call: the code of its order, where it has one.
func kind(err error) string {
	var refused *OrderError
	if errors.As(err, &refused) {
		return string(refused.Answer.Code)
	}
	return "call"
}

// held is the first call that waits for people. It ends the run once all other calls of
// the reply have been made.
func held(errs []error) error {
	for _, err := range errs {
		var refused *OrderError
		if errors.As(err, &refused) && refused.Answer.Code == intents.ApprovalRequired {
			return err
		}
	}
	return nil
}

// tally says of the calls of a reply how many are done, wait for people, or were not carried out, and why not.
func (l *loop) tally(calls []model.Call, errs []error) (text string, unmade bool) {
	var kinds []string
	counts := map[string]int{}
	for i, c := range calls {
		if l.isOutput(c.Name) {
			continue
		}
		kind := c.Name + ": done"
		var refused *OrderError
		switch {
		case errs[i] == nil:
		case errors.As(errs[i], &refused) && refused.Answer.Code == intents.ApprovalRequired:
			kind = c.Name + ": waiting for approval"
		case errors.As(errs[i], &refused):
			kind, unmade = c.Name+": not carried out, "+cut(refused.Answer.Reason, maxWhy), true
		default:
			kind, unmade = c.Name+": not carried out, "+cut(errs[i].Error(), maxWhy), true
		}
		if counts[kind]++; counts[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d × %s", counts[kind], kind)
	}
	return strings.Join(kinds, "; ") + ".", unmade
}

// maxWhy bounds why a call was not carried out, in bytes.
const maxWhy = 200

// waiting has the agent say what is done and what waits for people, with its outputs
// alone. They are its words here: nothing of the reply is carried out. Where calls were not made that do not wait
// either, that is said in any case.
func (l *loop) waiting(ctx context.Context) string {
	text := l.lastWords(ctx)
	if l.unmade { // what the model makes of it may be wrong
		text = strings.TrimSpace(text + "\n\n" + l.waits)
	}
	return text
}

func (l *loop) lastWords(ctx context.Context) string {
	l.say("Some of your calls wait for people to approve them; you will not see what becomes of them. Of your last calls: " + l.waits + " End now with " + l.outputs() + ": what is done, and what waits.")
	reply, err := l.respond(ctx, l.outputTools())
	if err != nil {
		return "" // they wait all the same
	}
	for _, c := range reply.Calls {
		var a struct {
			Reason string          `json:"reason"`
			Data   json.RawMessage `json:"data"`
		}
		if text := string(decoded(json.RawMessage(c.Arguments), &a).Data); cmp.Or(a.Reason, text) != "" {
			var plain string
			_ = json.Unmarshal(a.Data, &plain)
			return cmp.Or(a.Reason, plain, text)
		}
	}
	return reply.Text
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

// errNotExecuted answers a call that was not carried out because of another call of
// the same reply.
var errNotExecuted = &mistake{[]string{"not_executed: another call of this reply came first"}}

// stopped says why the next call with an effect is not begun: one before it ends the
// run, or nobody knows what became of it.
func (l *loop) stopped(errs []error, inTurn []int) error {
	for _, i := range inTurn {
		var refused *OrderError
		if fatal(errs[i:i+1]) != nil || errors.As(errs[i], &refused) && refused.Answer.Code == intents.Indeterminate {
			return errNotExecuted
		}
	}
	return nil
}

// prepare finds the tool of a call and checks its arguments.
func (l *loop) prepare(c model.Call) (*tool, json.RawMessage, error) {
	for _, t := range l.offered {
		if t.Name != c.Name {
			continue
		}
		args := json.RawMessage(strings.TrimSpace(c.Arguments))
		if len(args) == 0 {
			args = json.RawMessage(`{}`)
		}
		if !json.Valid(args) || args[0] != '{' {
			return nil, nil, mistaken("the arguments are not one JSON object")
		}
		if refused := (*intents.Refusal)(nil); errors.As(canonical(args), &refused) {
			return nil, nil, unsignable(refused)
		}
		if t.check != nil {
			if wrong := violations(t.check, args); len(wrong) > 0 {
				return nil, nil, &mistake{wrong}
			}
		}
		return t, args, nil
	}
	return nil, nil, mistaken("there is no tool %q", c.Name)
}

func canonical(args []byte) error {
	_, err := intents.Canonical(args)
	return err
}

// unsignable says to a model why what it has written can be in no intent.
func unsignable(r *intents.Refusal) *mistake {
	return &mistake{[]string{r.Pointer + ": " + r.Reason, "write each member once, numbers with at most 15 digits (a longer one as a string, where the schema takes that), and whole characters"}}
}

// maxViolations is how many violations a model is told.
const maxViolations = 10

// violations says what is wrong with a document, as "pointer: reason".
func violations(s *schemas.Schema, doc []byte) []string {
	var found []string
	for _, v := range s.ValidateBytes(doc) {
		if len(found) < maxViolations {
			found = append(found, v.Pointer+": "+v.Reason)
		}
	}
	return found
}

// answer tells the model the result of a call.
func (l *loop) answer(c model.Call, result any, err error) {
	var wrong *mistake
	var refused *OrderError
	switch {
	case errors.As(err, &wrong):
		result = map[string]any{"violations": wrong.violations}
	case errors.As(err, &refused) && refused.Answer.Code == intents.ApprovalRequired:
		result = map[string]any{"status": "held", "reason": told(refused)}
	case errors.As(err, &refused) && l.asked && noData(refused.Answer.Code):
		l.noData++
		result = map[string]any{"status": "error", "reason": "data unavailable: " + told(refused)}
	case errors.As(err, &refused):
		wrong := map[string]any{"code": refused.Answer.Code, "reason": told(refused)}
		if after := refused.Answer.RetryAfter; after > 0 {
			wrong["retry_after_sec"] = after
		}
		result = map[string]any{"error": wrong}
	case err != nil:
		result = map[string]any{"error": map[string]any{"reason": plain(err)}}
	}
	doc := compact(result)
	if suspicious(string(doc)) {
		doc = noted(doc)
		l.mark("result")
	}
	l.req.Messages = append(l.req.Messages, model.Message{Role: model.RoleTool, CallID: c.ID, Text: string(doc)})
}

// fatal is the first error that ends a run.
func fatal(errs []error) error {
	for _, err := range errs {
		var wrong *mistake
		if err != nil && !errors.As(err, &wrong) && !refusedTellably(err) {
			return err
		}
	}
	return nil
}

// tellable says whether a code is about one call, so that the model is told and may try something else. Those
// that are not are about the task itself, which can order no more: its key, its grant, its plan. They, and what
// only a defect of ours gives, end the run.
func tellable(c intents.Code) bool {
	switch c {
	case intents.OK, intents.SignatureInvalid, intents.KeyUnknown, intents.KeyRevoked, intents.GrantInvalid, intents.UnknownIntent, intents.KeyRole,
		intents.ExpiredTTL, intents.NotYetValid, intents.Changed, intents.ContractViolation, intents.Cancelled, intents.Unauthorized, intents.Internal:
		return false
	default:
		return true
	}
}

// told says why an order was refused or failed: the reason, and what the skill itself,
// the script or a schema says.
func told(e *OrderError) string {
	text := e.Answer.Reason
	o := e.Answer.Outcome
	if o == nil || len(o.Result) == 0 {
		return cut(text, maxTold)
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
		return cut(text, maxTold)
	}
	return cut(text+"\n"+string(o.Result), maxTold) // a traceback, say
}

// maxTold bounds what a model is told of one failure, in bytes.
const maxTold = 4000
