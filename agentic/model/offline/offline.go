// Package offline is the model that needs no key and no network. It exists for
// the demo, the sample and the tests, and is no substitute for a language model:
// it knows no domain and little English.
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
package offline

import (
	"context"
	"encoding/json"
	"fmt"

	"aob.dev/writ/agentic/model"
)

// Model is the offline model. The zero value is ready and safe for concurrent use.
type Model struct{}

var _ model.Model = Model{}

// Name implements [model.Model].
func (Model) Name() string { return "offline:lexical" }

// Complete implements [model.Model]. Usage is zero: no tokens were bought. It fails
// only on a request that is not one of the five thoughts, or whose input is not
// the document of its purpose; a task that cannot be done is an output.
func (Model) Complete(ctx context.Context, req model.Request) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, &model.Error{Reason: "the thought was cancelled", Retryable: true, Err: err}
	}
	switch req.Purpose {
	case model.SelectSkills:
		return think(req, selectSkills)
	case model.WritePlan:
		return think(req, writePlan)
	case model.ChooseAction:
		return think(req, chooseAction)
	case model.WriteScript:
		return think(req, writeScript)
	case model.Compose:
		return think(req, compose)
	}
	return model.Reply{}, &model.Error{Reason: fmt.Sprintf("no thought is named %q", req.Purpose)}
}

func think[I, O any](req model.Request, f func(I) O) (model.Reply, error) {
	var in I
	if err := json.Unmarshal(req.Input, &in); err != nil {
		return model.Reply{}, &model.Error{Reason: "the input of " + string(req.Purpose) + " is not its document", Err: err}
	}
	out, err := json.Marshal(f(in))
	if err != nil {
		return model.Reply{}, &model.Error{Reason: "the output of " + string(req.Purpose) + " is not JSON", Err: err}
	}
	return model.Reply{Output: out}, nil
}
