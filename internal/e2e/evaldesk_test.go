package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/internal/cli"
	"aob.dev/writ/internal/eval"
	"aob.dev/writ/internal/node"
)

// front is the language model of a desk, which asks others, and a clerk for these.
type front struct{ *clerk }

var (
	clauses  = regexp.MustCompile(`,? and |, `)
	subjects = map[string]*regexp.Regexp{ // of the agents
		"tickets": regexp.MustCompile(`(?i)ticket|\bT-\d`), "orders": regexp.MustCompile(`(?i)order|parcel|\bO-\d`),
		"billing": regexp.MustCompile(`(?i)invoice|\bI-\d`), "archive": regexp.MustCompile(`(?i)contract`),
	}
)

func (m front) Respond(ctx context.Context, req model.Request, _ func(model.Event)) (*model.Response, error) {
	message := ""
	for _, x := range req.Messages {
		if x.Role == model.RoleUser {
			message = x.Text
		}
	}
	if req.Agent != "desk" {
		return m.work(req, message, func(text string) *model.Response { return &model.Response{Text: text} }), nil
	}
	if len(exchanges(req)) > 0 {
		return desk()(ctx, req), nil
	}
	var calls []model.Call
	for _, clause := range clauses.Split(message, -1) {
		for agent, subject := range subjects {
			if subject.MatchString(clause) {
				calls = append(calls, call("ask_"+agent, marshalled(map[string]string{"input_text": clause})))
			}
		}
	}
	if len(calls) == 0 {
		return &model.Response{Text: "Hello! What can I do for you?"}, nil
	}
	return replying(req, calls...), nil
}

// TestEvalDesk: the shipped cases of a desk that asks four agents pass with a sensible model:
// each change of subject between two of them, several subjects at once, one that is down, and what
// each of them answers, by its own threshold.
func TestEvalDesk(t *testing.T) {
	t.Parallel()
	_, skills := serveCRM(t)
	m, err := model.NewOpenAI(model.OpenAIConfig{BaseURL: serveStrict(t, front{&clerk{}}), APIKey: "sk-test", Model: "o4-front"})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, setup{Skills: []string{skills}, Model: m, Agents: "../../evals/desk", Limits: node.Limits{Requests: 1 << 20, Window: time.Minute}})
	s.holdNothing()
	var out, said bytes.Buffer
	code := cli.Main(t.Context(), []string{"registry", "eval", "../../evals/desk", "--url", s.url, "--key", s.key, "--min", "0.95", "--json"},
		cli.IO{In: strings.NewReader(""), Out: &out, Err: &said, Env: func(string) string { return "" }})
	var r eval.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("exit %d: %v: %s", code, err, said.Bytes())
	}
	for _, x := range r.Results {
		if !x.OK {
			t.Errorf("%s %d %s: %q; %s", x.File, x.Case, x.Message, x.Wrong, x.Answer)
		}
	}
	if code != cli.ExitOK || len(r.Pairs) != 6 || len(r.Missing) != 0 || len(r.Sets) != 6 || r.All.Good != r.All.Cases {
		t.Errorf("exit %d: pairs %+v, missing %q, sets %+v", code, r.Pairs, r.Missing, r.Sets)
	}
	for _, x := range r.Results {
		if x.File == "3-partial.yaml" && regexp.MustCompile(`[A-Z]+_[A-Z]+|invalid`).MatchString(x.Answer) {
			t.Errorf("the user reads %q", x.Answer)
		}
	}
}
