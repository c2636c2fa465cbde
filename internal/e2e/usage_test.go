package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// TestUsage: the record, the messages, the usage report and the metrics equal the counts of the
// models' servers, with retried requests, and one answered by another model. Once a user's tokens
// are used, the next request is refused: the user reads when requests are accepted again, and no
// model is asked for that.
func TestUsage(t *testing.T) {
	t.Parallel()
	first := serveCompletions(t, func(n int) chaos {
		return map[int]chaos{2: rateLimited, 4: cutStream, 5: cutStream, 6: cutStream, 9: malformed}[n]
	})
	second := serveCompletions(t, func(int) chaos { return calm })
	s := start(t, setup{Skills: []string{serveShop(t).url}, Model: model.Fallback(first.model(), second.model())})
	got := s.ask(s.as("ana"), "How many orders are not paid?")
	if got.Status != "complete" {
		t.Fatalf("%s: %s", got.Status, got.Reason)
	}
	if second.n == 0 || first.done[cutStream] != 3 || first.done[rateLimited] != 1 {
		t.Fatalf("%d requests to the second server; of the first %v", second.n, first.done)
	}
	told := replies(first, second)
	s.counts(s.as("ana"), got, told)

	spent := 18 * told
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "budgets", Value: json.RawMessage(fmt.Sprintf(`{"tokens_per_user_day":%d}`, spent))}})
	got = s.ask(s.as("ana"), "How many outlets are open?")
	used := 18 * replies(first, second)
	if got.Status != "failed" || len(got.Intents) == 0 || !strings.Contains(got.Reason, fmt.Sprintf("the token budget of this user and day is spent: %d of %d. It is free again at ", used, spent)) {
		t.Errorf("%s: %s", got.Status, got.Reason)
	}
	if planner := 18 * (replies(first, second) - told); used != spent+planner || got.Failure == nil || strings.Contains(got.Reason, "_") {
		t.Errorf("%d tokens are used of %d; failure %+v", used, spent, got.Failure)
	}
	if status, p := s.call(s.as("ana"), http.MethodPost, "/v1/produce", map[string]any{"request": "Show me the errors of run r1"}, nil); status != http.StatusTooManyRequests || p.Code != "RATE_LIMITED" || !strings.Contains(p.Detail, "the token budget of this user and day is spent") {
		t.Errorf("a sentence: HTTP %d %+v", status, p)
	}
	if after := 18 * replies(first, second); after != used {
		t.Errorf("a model was asked for it: %d tokens, before %d", after, used)
	}
	if other := s.ask(s.as("ben"), "How many orders are not paid?"); other.Status != "complete" {
		t.Errorf("another user: %s: %s", other.Status, other.Reason)
	}
}

// TestUsageOfChildAgents: the same where an agent asks two others, which another model answers
// after their own has failed three times.
func TestUsageOfChildAgents(t *testing.T) {
	t.Parallel()
	m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{"desk": desk("orders", "tickets")}}
	for name, display := range others {
		m.parts[name] = func(context.Context, model.Request) *model.Response {
			return &model.Response{Text: display + " are well."}
		}
	}
	first := serveCompletions(t, func(n int) chaos { // all that the two asked agents send
		return map[int]chaos{2: rateLimited, 3: cutStream, 4: cutStream, 5: cutStream, 6: cutStream, 7: cutStream}[n]
	})
	second := serveCompletions(t, func(int) chaos { return calm })
	first.mind, second.mind = m, m
	_, skills := serveCRM(t)
	s := start(t, setup{Skills: []string{skills}, Model: model.Fallback(first.model(), second.model()), Agents: deskFiles(t, "")})
	got := s.askAgent(s.as("ana"), "desk", "How are things?")
	if got.Status != "complete" || got.Response != "Orders are well. Tickets are well." {
		t.Fatalf("%s: %s%s", got.Status, got.Response, got.Reason)
	}
	if second.n == 0 || replies(first) < 2 || first.done[cutStream] == 0 || first.done[rateLimited] != 1 {
		t.Fatalf("%d requests to the second server; of the first %v", second.n, first.done)
	}
	agents := map[string]bool{}
	for _, u := range got.Plan.Usage {
		agents[u.Agent] = true
	}
	if len(agents) != 3 {
		t.Errorf("usage of %v", agents)
	}
	s.counts(s.as("ana"), got, replies(first, second))
}

// replies that servers counted tokens for.
func replies(servers ...*completions) (n int) {
	for _, c := range servers {
		c.mu.Lock()
		n += c.n - c.done[rateLimited]
		c.mu.Unlock()
	}
	return n
}

// counts compares the figures of a user's first turn with the servers' counts.
func (s *system) counts(who person, got turn, replies int) {
	s.t.Helper()
	var recorded, reported catalog.Usage
	for _, u := range got.Plan.Usage {
		recorded.InputTokens, recorded.OutputTokens = recorded.InputTokens+u.InputTokens, recorded.OutputTokens+u.OutputTokens
		if u.LatencyMS == 0 {
			s.t.Errorf("no time: %+v", u)
		}
	}
	var report catalog.PlanUsageResult
	s.call(who, http.MethodPost, "/query/", map[string]string{"mode": "SQL", "query": "usage"}, &report)
	for _, u := range report.Usage {
		reported.InputTokens, reported.OutputTokens = reported.InputTokens+int(u.InputTokens), reported.OutputTokens+int(u.OutputTokens)
	}
	var rows catalog.MemoryQueryResult
	s.await("the query is answered in the time that it has", func() bool {
		status, _ := s.call(who, http.MethodPost, "/query/", map[string]string{"mode": "SQL", "query": "SELECT SUM(input_tokens) AS i, SUM(output_tokens) AS o FROM messages WHERE message_type = 'assistant' AND input_tokens > 0 AND latency_ms > 0 AND model LIKE 'openai:%' AND agent_name <> ''"}, &rows)
		return status == http.StatusOK
	})
	if len(rows.Rows) != 1 {
		s.t.Fatalf("rows %+v", rows)
	}
	counts := s.node.Router().Counts()
	want := fmt.Sprintf("%d and %d", 11*replies, 7*replies)
	for name, is := range map[string]string{
		"record": fmt.Sprintf("%d and %d", recorded.InputTokens, recorded.OutputTokens), "report": fmt.Sprintf("%d and %d", reported.InputTokens, reported.OutputTokens),
		"metrics": fmt.Sprintf("%d and %d", counts.Tokens["input"], counts.Tokens["output"]), "messages": fmt.Sprint(rows.Rows[0]["i"], " and ", rows.Rows[0]["o"]),
	} {
		if is != want {
			s.t.Errorf("%s: %s tokens, the servers counted %s", name, is, want)
		}
	}
}
