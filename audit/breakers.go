package audit

import (
	"errors"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
)

// marked: an intent has the mark of the breaker of its skill server; one that waits for
// people gets it at its release.
func (f *applier) marked(view *state.View, o *state.Intent, verdict intents.Verdict) error {
	mark := intents.BreakerPasses
	if verdict == intents.Allow {
		mark = view.Breaker(o, 0)
	}
	if f.whole && mark != o.Breaker {
		return fmt.Errorf("the breaker of its skill server marks it %q, and the record says %q", mark, o.Breaker)
	}
	return nil
}

// refusedByBreaker: what a breaker refuses is not sent, and its outcome says so.
func refusedByBreaker(out *intents.Outcome) error {
	if out.Status == intents.Failed && (out.Code == intents.DispatchUnavailable || out.Code == intents.Cancelled) && out.Transport == nil {
		return nil
	}
	return errors.New("the breaker of its skill server refused it, and the outcome is another one")
}
