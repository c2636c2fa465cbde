package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

func TestLabel(t *testing.T) {
	args, err := schemas.IntentArgs("write_memory")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"Count the outlets": "count_the_outlets",
		"  Größe, in m²! ":  "gr_e_in_m",
		"日本":                "result",
		"":                  "result",
		"---":               "result",
		"Sort the rows by magnitude, then take the first ten of them": "sort_the_rows_by_magnitude_then_take_the",
		strings.Repeat("a", 39) + " b":                                strings.Repeat("a", 39),
		strings.Repeat("a", 100):                                      strings.Repeat("a", 40),
	}
	for task, want := range tests {
		got := label(task)
		if got != want {
			t.Errorf("%q: %q, want %q", task, got, want)
		}
		if v := args.ValidateBytes(marshal(map[string]any{"label": got, "data": 1})); len(v) > 0 {
			t.Errorf("%q is no label: %v", got, v)
		}
	}
}

// TestPlain: the text of an error for another role, and in the end for the user.
func TestPlain(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{&IntentError{"skill.find", &intents.Answer{Code: intents.PolicyDenied, Reason: "outlets are not for this user"}}, "outlets are not for this user (skill.find)"},
		{&IntentError{"skill.find", &intents.Answer{Code: intents.PolicyDenied}}, "a policy denies it (skill.find)"},
		{fmt.Errorf("x: %w", &model.Error{Reason: "rate limit", Retryable: true}), "the model could not answer: rate limit"},
		{&silentError{"planner", context.DeadlineExceeded}, "the planner does not answer"},
		{errors.New("dial tcp 10.0.0.1: secret"), internalError},
		{json.Unmarshal([]byte("{"), new(any)), internalError},
	}
	for _, tt := range tests {
		if got := plain(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
