package executors_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/executortest"
)

func redacting(kinds ...any) []intents.Obligation {
	return []intents.Obligation{{Name: "redact", Value: kinds}}
}

// TestRedact: texts, numbers and names of a result are redacted and counted; details of a failure,
// too; a file is refused, and so are kinds that nobody knows.
func TestRedact(t *testing.T) {
	answer := func(result string) *executortest.Executor {
		return executortest.New(t, "files", nil, answering(func(context.Context, *executors.Intent) (*executors.Result, error) {
			return &executors.Result{Value: json.RawMessage(result)}, nil
		}))
	}
	in := executortest.Intent{Type: "skill.call", Args: map[string]any{"skill": "people"}}
	in.Ticket.Pins = []intents.Pin{{Skill: "people", Effect: "pure"}}
	for name, c := range map[string]struct {
		duties       []intents.Obligation
		result, want string
		code         intents.Code
		counts       map[string]any
	}{
		"all places": {
			redacting("email", "card"),
			`{"output":{"a@x.example":["by b@x.example",4111111111111111,7],"c@x.example":{"n":12345678901234567890}}}`,
			`{"output":{"[email]":["by [email]","[card]",7],"[email] 2":{"n":12345678901234567890}}}`, intents.OK,
			map[string]any{"email": 4.0, "card": 1.0},
		},
		"two rules":    {append(redacting("email"), redacting("card")...), `{"output":"a@x.example 4111111111111111"}`, `{"output":"[email] [card]"}`, intents.OK, map[string]any{"email": 1.0, "card": 1.0}},
		"nothing":      {redacting("email"), `{"output": {"b":1,"a":"x"}}`, `{"output":{"b":1,"a":"x"}}`, intents.OK, nil},
		"an image":     {redacting("email"), `{"output":{"files":[{"type":"image","file_id":"f1","size_bytes":3}]}}`, "", intents.OversizedOutput, nil},
		"a file":       {redacting("email"), `{"file_id":"f1","size_bytes":60000,"sha256":"sha256:00","sample":["a@x.example"]}`, "", intents.OversizedOutput, nil},
		"no such kind": {redacting("mail"), `{"output":1}`, "", intents.PolicyDenied, nil},
		"no kinds":     {redacting(), `{"output":1}`, "", intents.PolicyDenied, nil},
		"no list":      {[]intents.Obligation{{Name: "redact", Value: true}}, `{"output":1}`, "", intents.PolicyDenied, nil},
	} {
		in.Ticket.Obligations = c.duties
		r := answer(c.result).Do(t, in)
		if r.Code != c.code || string(r.Result) != c.want {
			t.Errorf("%s: %s %s %s", name, r.Code, r.Reason, r.Result)
		}
		if d := cmp.Diff(c.counts, executortest.EventPayload(t, r, "result.redacted")); d != "" && c.code == intents.OK {
			t.Errorf("%s: %s", name, d)
		}
	}
	in.Ticket.Obligations = redacting("email")
	r := executortest.New(t, "files", nil, answering(func(_ context.Context, o *executors.Intent) (*executors.Result, error) {
		o.Write(intents.LevelInfo, "people", "asked a@x.example", nil)
		return nil, executors.Fail(intents.ExecutorFailed, "no").WithDetails(map[string]string{"error": "a@x.example is unknown"})
	})).Do(t, in)
	if string(r.Result) != `{"error":"[email] is unknown"}` || len(r.Lines) > 0 || executortest.EventPayload(t, r, "result.redacted")["email"] != 1.0 {
		t.Errorf("a failure: %s %v %v", r.Result, r.Lines, r.Events)
	}
}
