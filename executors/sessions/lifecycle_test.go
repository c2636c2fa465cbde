package sessions_test

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// The workflow state is replaced, not merged.
func TestStateIsReplaced(t *testing.T) {
	b := open(t)
	b.session(t, "session.create", catalog.SessionCreate{SessionID: "s1"})
	for _, state := range []string{`{"filter":"open","page":1}`, `{"page":2}`, `[]`} {
		b.session(t, "session.update", catalog.SessionUpdate{SessionID: "s1", WorkflowState: json.RawMessage(state)})
		if s := b.session(t, "session.get", catalog.SessionRef{SessionID: "s1"}); string(s.WorkflowState) != state {
			t.Errorf("state %s, want %s", s.WorkflowState, state)
		}
	}
}

// A session is closed in one of three ways, and has no time to live then.
func TestEnds(t *testing.T) {
	b := open(t)
	for _, status := range []string{"COMPLETED", "ABANDONED", "ERROR"} {
		b.session(t, "session.create", catalog.SessionCreate{SessionID: status})
		b.session(t, "session.close", catalog.SessionClose{SessionID: status, Status: status})
		if s := b.session(t, "session.get", catalog.SessionRef{SessionID: status}); s.Status != status || s.TTL != nil {
			t.Errorf("%+v", s)
		}
	}
}
