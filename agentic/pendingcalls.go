package agentic

import (
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

// made is a call that changes something, waits for approval, or was not made.
type made struct {
	state callState
	text  string // the call, and why it was not made
}

type callState int

const (
	callWaits callState = iota
	callDone
	callUnknown
	callNotMade
)

var callStates = [...]string{callWaits: "Waiting for approval", callDone: "Done", callUnknown: "Outcome unknown", callNotMade: "Not carried out"}

// maxWhy bounds the reason why a call was not executed, in bytes; maxCallText its arguments.
const (
	maxWhy      = 200
	maxCallText = 160
)

// note remembers a call for the report. A call that changes nothing is in no report once it is
// done.
func (l *loop) note(c model.Call, err error) {
	changes := false
	for _, t := range l.tools {
		if t.Name == c.Name && t.output {
			return
		}
		changes = changes || t.Name == c.Name && t.changes
	}
	m := made{text: c.Name + " " + visible.Cut(string(compact(json.RawMessage(c.Arguments))), maxCallText)}
	switch code := codeOf(err); {
	case err == nil && !changes:
		return
	case err == nil:
		m.state = callDone
	case code == intents.ApprovalRequired:
		m.state = callWaits
	case code == intents.Indeterminate:
		m.state = callUnknown
	default:
		why := err.Error()
		if refused, ok := errors.AsType[*IntentError](err); ok {
			why = refused.Answer.Reason
		}
		m.state, m.text = callNotMade, m.text+": "+visible.Cut(why, maxWhy)
	}
	l.made = append(l.made, m)
}

// report lists the calls of the step by state, for a turn in which some of them wait. It is
// written here and not by the model, which has not seen what becomes of them.
func (l *loop) report() string {
	var b strings.Builder
	for state, name := range callStates {
		var lines []string
		for _, m := range l.made {
			if m.state == callState(state) {
				lines = append(lines, "\n- "+m.text)
			}
		}
		if len(lines) > 0 {
			fmt.Fprintf(&b, "%s (%d):%s\n\n", name, len(lines), strings.Join(lines, ""))
		}
	}
	return strings.TrimSpace(b.String())
}
