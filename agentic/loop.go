package agentic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/state/agents"
)

// loop runs one agent: it asks the model, executes the calls of its reply, and asks again with
// their results, until one of the agent's outputs ends it. A model's reply has no effect by
// itself: each call is checked here, and its effect is an intent, which the router judges.
type loop struct {
	model model.Model
	log   *slog.Logger
	agent *agents.Agent
	req   model.Request // with the messages so far
	tools []*tool
	on    func(model.Event) // for text that the user may see while it is written; or nil
	// calling, if set, reports that an answer in a call is shown already.
	calling func() bool
	text    bool // a reply without calls ends the run with its text

	taken *model.Response // a reply to begin with; nil: none
	// finish ends the step with the result of a call, and over reports that a call has ended it; nil:
	// no call does.
	finish func(ctx context.Context, result any) (any, error)
	over   func() bool

	seen       func() []seenImage // images of the last results; nil: none
	shown      int                // of these, with shownBytes
	shownBytes int
	offered    []*tool // available tools
	used       []catalog.Usage
	before     int // tokens that earlier tasks used
	requests   int
	mistaken   int            // calls of outputs with errors
	labels     int            // results that have a label
	replies    int            // replies with calls, including earlier tasks
	recalled   int            // index of the message of an earlier task's latest reply
	short      map[int]bool   // indices of messages whose result was shortened
	failed     map[string]int // how often each call has failed since one succeeded

	now  func() time.Time // for busy; nil: time.Now
	busy time.Duration    // spent in the model and the calls
	step int              // of the plan, for observers; 0: none

	isChild bool                // asked by another agent, which tells the user what is missing
	noData  int                 // calls whose data was not available
	fanOut  int                 // the most agents that one reply asked
	odd     map[string][]string // members of calls that were dropped, by the call's id
	made    []made              // calls for the report of a turn that waits for approval
	dropped []string            // agents that were not asked because the reply exceeded the cap
}

// Errors that end a run without an output.
var (
	errNoOutput = errors.New("the model did not use its tools")
	errLimit    = errors.New("the limit of the agent was reached")
	errAgain    = fmt.Errorf("%w: one call failed %d times", errLimit, maxFailures)
)

const (
	sideBySide  = 8   // concurrent calls of one reply
	corrections = 2   // how often an output, or a reply without a call, is corrected
	maxFailures = 3   // of one and the same call, with no other success between
	maxDropped  = 100 // asks beyond the cap that are reported
)

// run asks the model until the agent ends. If the agent ends with a text, the text is the result.
func (l *loop) run(ctx context.Context) (string, error) {
	ctx = logging.By(ctx, l.agent.Name, "run")
	ctx, span := tracing.Start(ctx, "invoke_agent "+l.agent.Name, tracing.Operation.String("invoke_agent"), tracing.Agent.String(l.agent.Name))
	defer span.End()
	l.read()
	began, missed := time.Now(), 0
	for l.requests < l.agent.Limits.Requests && l.tokens() < l.agent.Limits.Tokens && time.Since(began) < l.agent.Limits.Time() {
		reply, err := l.nextReply(ctx)
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
		if reply.Text != "" && (l.calling == nil || !l.calling()) { // said before calls: not part of the answer
			l.withdraw()
		}
		if l.handsOver(reply.Calls) {
			l.taken = reply
			return "", errHandover
		}
		if ended, err := l.carryOut(ctx, reply.Calls); ended || err != nil {
			return "", err
		}
		if l.failsAgain() {
			return l.last(ctx, errAgain)
		}
	}
	return l.last(ctx, errLimit)
}

// noteFailures counts failed calls by what the model wrote. What passes by itself is no failure: the
// model was told when to call again.
func (l *loop) noteFailures(calls []model.Call, errs []error) {
	if slices.Contains(errs, nil) || l.failed == nil {
		l.failed = make(map[string]int)
	}
	for i, c := range calls {
		if errs[i] != nil && !passes(codeOf(errs[i])) {
			l.failed[c.Name+" "+c.Arguments]++
		}
	}
}

// failsAgain reports whether a call has failed so often that the model would repeat it to its limit.
func (l *loop) failsAgain() bool {
	for _, n := range l.failed {
		if n >= maxFailures {
			return true
		}
	}
	return false
}

// withdraw takes back what was shown of the reply.
func (l *loop) withdraw() {
	if l.on != nil {
		l.on(model.Event{Reset: true})
	}
}

// nextReply returns the reply that the run begins with, or asks the model.
func (l *loop) nextReply(ctx context.Context) (*model.Response, error) {
	reply := l.taken
	if reply == nil {
		return l.respond(ctx, l.tools)
	}
	l.taken = nil
	l.offer(l.tools)
	l.appendReply(reply)
	return reply, nil
}

// last gives an agent that may not go on one more request, with its outputs alone, so that it can
// say what was done and what was not. If it ends with a text it keeps its tools, which
// it may not call: servers refuse a conversation with calls of tools that are not there.
func (l *loop) last(ctx context.Context, why error) (string, error) {
	end, tools := "Answer now", l.tools
	if l.text {
		l.req.Choice = model.ChoiceNone
	} else {
		end, tools = "End now with "+l.outputs(), l.outputTools()
	}
	l.say("No more work is possible: " + why.Error() + ". " + end + ": what was done, and what was not.")
	reply, err := l.respond(ctx, tools)
	switch {
	case err != nil:
		return "", err
	case l.text && strings.TrimSpace(reply.Text) != "":
		return reply.Text, nil
	case l.text:
		return "", why
	}
	if ended, err := l.carryOut(ctx, reply.Calls); ended || err != nil {
		return "", err
	}
	return "", why
}

func (l *loop) offer(tools []*tool) {
	l.offered, l.req.Tools = nil, nil
	for _, t := range tools {
		if t.usable == nil || t.usable() {
			l.offered, l.req.Tools = append(l.offered, t), append(l.req.Tools, t.Tool)
		}
	}
	if len(l.offered) > 0 && !l.text {
		l.req.Choice = model.ChoiceRequired
	}
}

// dropArgs remembers members of a call that its tool does not know.
func (l *loop) dropArgs(call string, names []string) {
	if l.odd == nil {
		l.odd = make(map[string][]string)
	}
	l.odd[call] = names
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

// tokens returns the tokens used by the run and by tasks before it.
func (l *loop) tokens() int { return l.before + catalog.Tokens(l.used) }

// working starts measuring busy time until end is called.
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
				InputTokens: a.Usage.InputTokens, CachedTokens: a.Usage.CachedTokens, OutputTokens: a.Usage.OutputTokens, Estimated: a.Usage.Estimated,
				LatencyMS: (a.Usage.Latency + time.Millisecond - 1).Milliseconds(), // round up to a millisecond
			})
		}
	}
	return reply, err
}
