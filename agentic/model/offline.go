package model

import (
	"context"
	"encoding/json"
	"fmt"
)

// OfflineName is how usage reports show the offline model.
const OfflineName = "offline:lexical"

// Offline is the model that needs no key and no network: lexical matching
// instead of a language model, the same answer for the same request always.
//
// It knows no domain. What a task means is read off its own words and off the
// names, titles and descriptions in the schemas of the skills it is shown; what
// neither of them says, it cannot do, and says so. The zero value is ready and
// safe for concurrent use.
//
// Its purposes share one notion, the [query]: WritePlan reads the task against
// the output schema of each skill and states the query that answers it in the
// task of a step, in a fixed form of English (see query.String); ChooseAction
// and WriteScript read that form back. Step tasks that another planner wrote in
// free words are read like a user's task.
type Offline struct{}

var _ Model = Offline{}

// Name implements [Model].
func (Offline) Name() string { return OfflineName }

// Complete implements [Model]. Usage is zero: no tokens were bought. It fails
// only on a request that is not one of the five thoughts, or whose input is
// not the document of its purpose; a task that cannot be done is an output.
func (Offline) Complete(ctx context.Context, req Request) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, &Error{Reason: "the thought was cancelled", Retryable: true, Err: err}
	}
	switch req.Purpose {
	case SelectSkills:
		return think(req, selectSkills)
	case WritePlan:
		return think(req, writePlan)
	case ChooseAction:
		return think(req, chooseAction)
	case WriteScript:
		return think(req, writeScript)
	case Compose:
		return think(req, compose)
	}
	return Reply{}, &Error{Reason: fmt.Sprintf("no thought is named %q", req.Purpose)}
}

func think[I, O any](req Request, f func(I) O) (Reply, error) {
	var in I
	if err := json.Unmarshal(req.Input, &in); err != nil {
		return Reply{}, &Error{Reason: "the input of " + string(req.Purpose) + " is not its document", Err: err}
	}
	out, err := json.Marshal(f(in))
	if err != nil {
		return Reply{}, &Error{Reason: "the output of " + string(req.Purpose) + " is not JSON", Err: err}
	}
	return Reply{Output: out}, nil
}
