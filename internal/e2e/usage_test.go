package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// TestUsage: what the models' servers counted is what the record, the usage report and the metrics say,
// with requests that were sent again, and one that another model answered. Once a user's tokens are used,
// the next request is not carried out: the user reads when it will be, and no model is asked for that.
func TestUsage(t *testing.T) {
	first := serveCompletions(t, func(n int) chaos {
		return map[int]chaos{2: rateLimited, 4: cutStream, 5: cutStream, 6: cutStream, 9: malformed}[n]
	})
	second := serveCompletions(t, func(int) chaos { return calm })
	s := start(t, setup{Skills: []string{serveShop(t).url}, Model: model.Fallback(first.model(), second.model())})
	got := s.ask(s.as("ana"), "How many orders per outlet?")
	if got.Status != "complete" {
		t.Fatalf("%s: %s", got.Status, got.Reason)
	}
	replies := func() (n int) {
		for _, c := range []*completions{first, second} {
			c.mu.Lock()
			n += c.n - c.done[rateLimited] - c.done[cutStream]
			c.mu.Unlock()
		}
		return n
	}
	if second.n == 0 || first.done[cutStream] != 3 || first.done[rateLimited] != 1 {
		t.Fatalf("%d requests to the second server; of the first %v", second.n, first.done)
	}
	told := replies()
	want := fmt.Sprintf("%d and %d", 11*told, 7*told)
	var recorded, reported catalog.Usage
	for _, u := range got.Plan.Usage {
		recorded.InputTokens, recorded.OutputTokens = recorded.InputTokens+u.InputTokens, recorded.OutputTokens+u.OutputTokens
	}
	var report catalog.PlanUsageResult
	s.call(s.as("ana"), http.MethodPost, "/query/", map[string]string{"mode": "SQL", "query": "usage"}, &report)
	for _, u := range report.Usage {
		reported.InputTokens, reported.OutputTokens = reported.InputTokens+int(u.InputTokens), reported.OutputTokens+int(u.OutputTokens)
	}
	counts := s.node.Router().Counts()
	for name, is := range map[string]string{
		"record": fmt.Sprintf("%d and %d", recorded.InputTokens, recorded.OutputTokens), "report": fmt.Sprintf("%d and %d", reported.InputTokens, reported.OutputTokens),
		"metrics": fmt.Sprintf("%d and %d", counts.Tokens["input"], counts.Tokens["output"]),
	} {
		if is != want {
			t.Errorf("%s: %s tokens, the servers counted %s", name, is, want)
		}
	}

	spent := 18 * told
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "budgets", Value: json.RawMessage(fmt.Sprintf(`{"tokens_per_user_day":%d}`, spent))}})
	got = s.ask(s.as("ana"), "How many orders does the outlet Mitte have?")
	used := 18 * replies()
	if got.Status != "failed" || len(got.Orders) == 0 || !strings.Contains(got.Reason, fmt.Sprintf("the token budget of this user and day is spent: %d of %d. It is free again at ", used, spent)) {
		t.Errorf("%s: %s", got.Status, got.Reason)
	}
	if planner := 18 * (replies() - told); used != spent+planner || got.Failure == nil || strings.Contains(got.Reason, "_") {
		t.Errorf("%d tokens are used of %d; failure %+v", used, spent, got.Failure)
	}
	if other := s.ask(s.as("ben"), "How many orders per outlet?"); other.Status != "complete" {
		t.Errorf("another user: %s: %s", other.Status, other.Reason)
	}
}
