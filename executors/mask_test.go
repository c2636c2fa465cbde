package executors_test

import (
	"context"
	"encoding/json"
	"testing"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/executortest"
)

// A mask cannot reach into a file: a result that became one, with a sample of
// what should be masked, does not leave.
func TestMaskOfALargeResult(t *testing.T) {
	large := func(context.Context, *executors.Intent) (*executors.Result, error) {
		return &executors.Result{Value: json.RawMessage(`{"file_id":"f_1","size_bytes":60000,"sha256":"` + intents.Digest(nil) + `","sample":["{\"mail\":\"a@x\"}"]}`)}, nil
	}
	e := executortest.New(t, "files", nil, answering(large))
	in := executortest.Intent{Type: "skill.call", Args: map[string]any{"skill": "people"}}
	in.Ticket.Pins = []intents.Pin{{Skill: "people", Effect: "pure"}}
	in.Ticket.Obligations = []intents.Obligation{{Name: "mask", Value: []string{"/output/*/mail"}}}
	if r := e.Do(t, in); r.Status != intents.Failed || r.Code != intents.OversizedOutput || r.Result != nil || r.Retryable {
		t.Errorf("%+v", r)
	}
}
