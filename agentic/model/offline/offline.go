// Package offline is the model that needs no key and no network. It exists for the demo, the
// sample and the tests, and is no substitute for a language model: it knows no domain, little
// English, and reads no instructions.
//
// It matches the words of a request with the declarations in the skills' schemas: the noun of
// their records, the names of columns and arguments, the values that a column may have. It
// chooses one skill, and around those words knows a few forms: one condition, a count, an order
// and a limit.
//
// It refuses rather than guesses: a request with an unknown word is not half answered, and the
// refusal says what can be typed instead, and how to set a language model. It calls skills that
// are not pure only if the request names them.
//
// It knows the tasks of planner, executor, composer, classifier and producer. For any other agent
// it does what one step can do, and states the result.
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

// action is a reply: a call of a tool, or a text.
type action struct {
	tool string
	args any
	text string
}

// Name implements [model.Model].
func (Model) Name() string { return "offline:lexical" }

// Respond implements [model.Model]. A reply is one call or one text, which on receives in one
// piece. Usage is zero: no tokens were bought. It fails if a required block of an agent's message
// is missing or broken; if the task cannot be done the reply says so.
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

// respond answers as an agent, identified by its name or its output tools.
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
