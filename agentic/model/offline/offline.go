// Package offline is the model that needs no key and no network. It exists for
// the demo, the sample and the tests, and is no substitute for a language model:
// it knows no domain, little English, and reads no instructions.
//
// It matches the words of a request with what the schemas of the skills declare:
// the noun of their records, the names of columns and arguments, the values that
// a column may have. Around those it knows a few forms: count, total, average,
// per and by, the highest and the lowest, over and under. The same request gives
// the same answer always.
//
// It refuses rather than guesses: a request with a word that it cannot place is
// not half answered, and the refusal says what can be typed instead. Skills that
// are not pure it calls only where the request names them.
//
// It knows what planner, executor, composer, classifier and producer have to do. For any other agent it
// does what one step can do, and says the result.
package offline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"aob.dev/writ/agentic/model"
)

// Model is the offline model. The zero value is ready and safe for concurrent use.
type Model struct{}

var _ model.Model = Model{}

// action is what a reply does: it calls a tool, or says a text.
type action struct {
	tool string
	args any
	text string
}

// Name implements [model.Model].
func (Model) Name() string { return "offline:lexical" }

// Respond implements [model.Model]. A reply is one call or one text, which on gets
// in one piece. Usage is zero: no tokens were bought. It fails where a block is
// missing or broken that an agent's message must have; what cannot be done is said in
// the reply.
func (m Model) Respond(ctx context.Context, r model.Request, on func(model.Event)) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, &model.Error{Reason: "the request was cancelled", Retryable: true, Err: err}
	}
	c := understand(r)
	act := c.respond(r.Agent)
	args, err := json.Marshal(act.args)
	switch {
	case c.err != nil || err != nil:
		return nil, &model.Error{Reason: "the request does not hold what its agent needs", Err: cmp.Or(c.err, err)}
	case act.tool != "":
		call := model.Call{ID: fmt.Sprintf("call_%d", len(r.Messages)), Name: act.tool, Arguments: string(args)}
		return &model.Response{Calls: []model.Call{call}, Model: m.Name()}, nil
	case r.Choice == model.ChoiceRequired:
		return nil, &model.Error{Reason: "the offline model found no tool to call"}
	case on != nil:
		on(model.Event{Text: act.text})
	}
	return &model.Response{Text: act.text, Model: m.Name()}, nil
}

// respond answers as an agent, which its name says or its output tools do.
func (c *conversation) respond(agent string) action {
	switch {
	case agent == "planner" || c.offers("plan"):
		return planTask(c)
	case agent == "executor" || c.offers("insufficient"):
		return doStep(c)
	case agent == "composer" && c.blocks["[Clarify]"] != "":
		return clarify(c)
	case agent == "composer":
		return composeAnswer(c)
	case agent == "classifier":
		return classify(c)
	case agent == "producer":
		return produce(c)
	}
	return converse(c)
}
