package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/internal/cli"
	"aob.dev/writ/internal/e2e/testdata/crm"
	"aob.dev/writ/internal/eval"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/state/agents"
)

// serveCRM serves the CRM until the test ends.
func serveCRM(t *testing.T) (*crm.Server, string) {
	t.Helper()
	s := crm.New(time.Now().UTC())
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return s, "name=crm -- " + srv.URL + "/mcp"
}

// beCRM does not return in a process that was started as the CRM.
func beCRM() {
	if filepath.Base(os.Args[0]) != "crm" {
		return
	}
	if err := crm.New(time.Now().UTC()).ServeStdio(); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// startOffice starts a node whose model is a clerk, over HTTP, and whose skills are the
// CRM's. Nothing needs approval.
func startOffice(t *testing.T, c *clerk) (*system, *crm.Server) {
	t.Helper()
	return startOfficeOf(t, c)
}

func startOfficeOf(t *testing.T, c model.Model) (*system, *crm.Server) {
	t.Helper()
	records, skills := serveCRM(t)
	m, err := model.NewOpenAI(model.OpenAIConfig{BaseURL: serveStrict(t, c), APIKey: "sk-test", Model: "o4-clerk"})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, setup{Skills: []string{skills}, Model: m, Limits: node.Limits{Requests: 1 << 20, Window: time.Minute}})
	s.holdNothing()
	return s, records
}

// TestCRM: the CRM has more than fifty tools, each with a name of its own, over HTTP and
// over standard streams.
func TestCRM(t *testing.T) {
	t.Parallel()
	names := crm.Tools()
	if len(names) < 50 || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Fatalf("%d tools: %q", len(names), names)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "crm")
	if err := os.Symlink(exe, program); err != nil {
		t.Fatal(err)
	}
	m := &mind{}
	s := start(t, setup{Skills: []string{"name=crm isolation=none -- " + program}, Model: m})
	s.ask(s.as("ana"), "List the customers")
	req := requestsOf(m, agents.Planner, offeredSkills)
	if len(req) == 0 || len(req[0]) != len(names) {
		t.Errorf("the planner was offered %+v", req)
	}
}

// TestEvalCRM: the shipped cases about a CRM of more than fifty tools pass with a sensible
// model, which a server that is as strict as OpenAI's stands for.
func TestEvalCRM(t *testing.T) {
	t.Parallel()
	s, records := startOffice(t, &clerk{})
	var out, said bytes.Buffer
	code := cli.Main(t.Context(), []string{"registry", "eval", "../../evals/crm", "--url", s.url, "--key", s.key, "--json"},
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
	if code != cli.ExitOK || r.All.Cases < 60 || r.All.Good != r.All.Cases || len(r.Sets) < 5 {
		t.Errorf("exit %d: %+v", code, r.All)
	}
	if n := records.Calls("close_ticket"); n != 4+crm.OldTickets {
		t.Errorf("the CRM counted %d closings", n)
	}
}

// TestLoopFailsHalfway: after 12 of 16 tickets the CRM takes no more changes, or the
// model is gone. The user is told about the twelve anyway.
func TestLoopFailsHalfway(t *testing.T) {
	t.Parallel()
	const task = "Close all tickets older than 10 days."
	t.Run("the tool", func(t *testing.T) {
		s, records := startOffice(t, &clerk{})
		records.FailAfter("close_ticket", 12)
		got := s.ask(s.as("ana"), task)
		if !strings.Contains(got.Response, "12 of 16") || records.Count("tickets", "status", "closed") != 12+2 {
			t.Errorf("%s: %s%s", got.Status, got.Response, got.Reason)
		}
	})
	t.Run("the model", func(t *testing.T) {
		c := &clerk{}
		s, records := startOffice(t, c)
		records.FailAfter("close_ticket", 12)
		c.failing = func(model.Request) error {
			if records.Calls("close_ticket") > 0 {
				return context.DeadlineExceeded
			}
			return nil
		}
		got := s.ask(s.as("ana"), task)
		if got.Status != "failed" || !strings.Contains(got.Reason, "close_ticket: 12 done, 4 failed") {
			t.Errorf("%s: %s%s", got.Status, got.Response, got.Reason)
		}
	})
}
