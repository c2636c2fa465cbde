package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/visible"
)

// held returns the first call that waits for approval. It ends the run once all other calls of
// the reply have been made.
func held(errs []error) error {
	for _, err := range errs {
		if codeOf(err) == intents.ApprovalRequired {
			return err
		}
	}
	return nil
}

// tally lists how many calls of a reply are done, wait for approval, or were not executed, and
// why not.
func (l *loop) tally(calls []model.Call, errs []error) (text string, unmade bool) {
	var kinds []string
	counts := map[string]int{}
	for i, c := range calls {
		if l.isOutput(c.Name) {
			continue
		}
		kind := c.Name + ": done"
		var refused *IntentError
		switch {
		case errs[i] == nil:
		case codeOf(errs[i]) == intents.ApprovalRequired:
			kind = c.Name + ": waiting for approval"
		case errors.As(errs[i], &refused):
			kind, unmade = c.Name+": not carried out, "+visible.Cut(refused.Answer.Reason, maxWhy), true
		default:
			kind, unmade = c.Name+": not carried out, "+visible.Cut(errs[i].Error(), maxWhy), true
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

// maxWhy bounds the reason why a call was not executed, in bytes.
const maxWhy = 200

// waiting has the agent say what is done and what waits for approval, with its outputs alone. Its
// reply is only text here: nothing of it is executed. If some calls were neither made nor wait,
// the text says so in any case.
func (l *loop) waiting(ctx context.Context) string {
	text := l.lastWords(ctx)
	if l.unmade { // the model's text may be wrong
		text = strings.TrimSpace(text + "\n\n" + l.waits)
	}
	return text
}

func (l *loop) lastWords(ctx context.Context) string {
	l.say("Some of your calls wait for people to approve them; you will not see what becomes of them. Of your last calls: " + l.waits + " End now with " + l.outputs() + ": what is done, and what waits.")
	reply, err := l.respond(ctx, l.outputTools())
	if err != nil {
		return "" // they wait regardless
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
