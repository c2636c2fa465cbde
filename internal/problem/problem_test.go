package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// Every code of the closed set has a page, a title and an HTTP status.
func TestEveryCode(t *testing.T) {
	for _, i := range intents.Codes() {
		p := problem.New(i.Code, "", "")
		w := httptest.NewRecorder()
		p.Write(w)
		var got problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if w.Code != i.Status || got.Status != i.Status || got.Type != "https://aob.dev/codes/"+string(i.Code) || got.Title == "" {
			t.Errorf("%s: %d %+v", i.Code, w.Code, got)
		}
		if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
			t.Errorf("%s: content type %q", i.Code, ct)
		}
		if (w.Code == 429) != (w.Header().Get("Retry-After") != "") && i.Code != intents.InFlight {
			t.Errorf("%s: Retry-After %q", i.Code, w.Header().Get("Retry-After"))
		}
	}
}

// What went wrong inside stays inside.
func TestOfForeignError(t *testing.T) {
	p := problem.FromError(errors.New("dial tcp 10.0.0.7:4222: password s3cret"))
	if d := cmp.Diff(problem.New(intents.Internal, "", ""), p); d != "" {
		t.Error(d)
	}
}

func TestOfRefusal(t *testing.T) {
	want := problem.New(intents.TaskScope, "/intent/args/skill", "not a skill of the step")
	if d := cmp.Diff(want, problem.FromError(fmt.Errorf("stage 3: %w", intents.Refuse(intents.TaskScope, "/intent/args/skill", "not a skill of the step")))); d != "" {
		t.Error(d)
	}
}

func TestOfAnswer(t *testing.T) {
	if p := problem.OfAnswer(&intents.Answer{Code: intents.OK}); p != nil {
		t.Errorf("done is a problem: %v", p)
	}
	p := problem.OfAnswer(&intents.Answer{
		IntentID: "sha256:1", TraceID: "t", Code: intents.ExecutorFailed, Reason: "broken",
		Decision: &intents.Decision{PolicyIDs: []string{"a.b"}}, Outcome: &intents.Outcome{Retryable: true},
	})
	want := problem.New(intents.ExecutorFailed, "", "broken")
	want.IntentID, want.TraceID, want.PolicyIDs, want.Retryable = "sha256:1", "t", []string{"a.b"}, true
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
}

func TestRetryAfterRoundsUp(t *testing.T) {
	p := problem.New(intents.RateLimited, "", "")
	p.RetryAfter = 8100 * time.Millisecond
	w := httptest.NewRecorder()
	p.Write(w)
	if got := w.Header().Get("Retry-After"); got != "9" {
		t.Errorf("Retry-After %q, want 9", got)
	}
	if !strings.Contains(w.Body.String(), `"hint":"try again in 9 s"`) {
		t.Errorf("it does not say when: %s", w.Body)
	}
}

// TestRetryAfterOnce: where the executor's reason says when to try again, the header says the same, and
// no hint another number; where nothing says when, no number is made up.
func TestRetryAfterOnce(t *testing.T) {
	for _, c := range []struct{ reason, result, header, hint string }{
		{"too many: try again in 60 s", `{"retry_after_sec":60}`, "60", ""},
		{"too many", ``, "1", intents.RateLimited.Info().Hint},
		{"too many", `{"retry_after_sec":"soon"}`, "1", intents.RateLimited.Info().Hint},
		{"too many", `[1]`, "1", intents.RateLimited.Info().Hint},
	} {
		w := httptest.NewRecorder()
		problem.OfAnswer(&intents.Answer{Code: intents.RateLimited, Reason: c.reason, Outcome: &intents.Outcome{Code: intents.RateLimited, Result: []byte(c.result)}}).Write(w)
		var got problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Header().Get("Retry-After") != c.header || got.Detail != c.reason || got.Hint != c.hint {
			t.Errorf("%s: %q %+v %v", c.result, w.Header().Get("Retry-After"), got, err)
		}
	}
}

// TestProblemText: a refusal without a reason of its own says at least what its code means.
func TestProblemText(t *testing.T) {
	for _, info := range intents.Codes() {
		if got := problem.New(info.Code, "", "").Error(); got != string(info.Code)+": "+info.Title {
			t.Errorf("%q", got)
		}
	}
	if got := problem.New(intents.NotFound, "", "no such plan").Error(); got != "NOT_FOUND: no such plan" {
		t.Error(got)
	}
}
