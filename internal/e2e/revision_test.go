package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/cli"
)

// TestPromptOfARunningPlan: a prompt is edited while a call of a turn waits for people. The
// turn goes on with the prompt that it began with, in the task that goes on after the approval,
// too; the next turn of the session has the new one. A bundle shows both, and verifies.
func TestPromptOfARunningPlan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(word string) {
		t.Helper()
		text := "name: desk\ndescription: Notes.\ninstructions: Say " + word + ".\ntools: [{server: crm, name: add_note}]\n"
		if err := os.WriteFile(filepath.Join(dir, "desk.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	_, skills := serveCRM(t)
	m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{
		"desk": func(_ context.Context, req model.Request) *model.Response {
			if len(req.Tools) > 0 { // else a call waits, and there is nothing to call
				if r := noting(req); r.Text == "" {
					return r
				}
			}
			_, word, _ := strings.Cut(req.System, "Say ")
			return &model.Response{Text: "I say " + word[:3] + "."}
		},
	}}
	s := start(t, setup{Model: m, Skills: []string{skills}, Agents: dir})
	ben, _, _ := s.holds("crm.add_note")
	who := s.as("local")
	who.session = "talk"
	ask := func() (held heldTurn) {
		t.Helper()
		if status, p := s.call(who, http.MethodPost, "/agent/run", map[string]string{"message": "Note that I called.", "agent": "desk"}, &held); status != http.StatusAccepted {
			t.Fatalf("HTTP %d %+v %+v", status, p, held)
		}
		return held
	}
	end := func(held heldTurn) string {
		t.Helper()
		_, seen := s.streamEnd(who, held.PlanID, "")
		if got, p := s.decide(ben, held.Approval.IntentID, "approve", ""); got.State != catalog.ApprovalReleased {
			t.Fatalf("%+v %+v", got, p)
		}
		if last, _ := s.streamEnd(who, held.PlanID, seen); last != "done" {
			t.Fatalf("the stream ends with %s", last)
		}
		return s.planOf(who, held.PlanID).Response
	}
	first := ask()
	write("new")
	s.await("the edited prompt is in force", func() bool {
		pushed := 0
		for _, o := range s.intents("") {
			if o.Type == "registry.push" && o.Outcome != nil {
				pushed++
			}
		}
		return pushed == 2
	})
	if got := end(first); got != "I say old." {
		t.Errorf("the turn that was running answers %q", got)
	}
	second := ask()
	if got := end(second); got != "I say new." {
		t.Errorf("the next turn answers %q", got)
	}

	bundle := filepath.Join(t.TempDir(), "bundle.jsonl")
	s.await("the ledger has it all", func() bool { return s.exported(bundle) == 0 })
	results := resultsOf(t, bundle)
	for plan, word := range map[string]string{first.PlanID: "Say old.", second.PlanID: "Say new."} {
		tasks := map[string]bool{}
		for _, o := range s.intents(plan) {
			if o.Type != "agent.get" {
				continue
			}
			tasks[o.Context.TaskID] = true
			if result := results[o.Recorded]; !strings.Contains(result, word) {
				t.Errorf("the bundle has that %s was told %s", o.Context.TaskID, result)
			}
		}
		if len(tasks) != 3 { // the driver, the held task, the one that continued
			t.Errorf("tasks of %s: %v", plan, tasks)
		}
	}
}

// writ runs a command on the data directory of a system that runs.
func (s *system) writ(args ...string) []byte {
	s.t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Main(s.t.Context(), args, cli.IO{In: new(bytes.Buffer), Out: &out, Err: &errs, Env: func(string) string { return "" }}); code != cli.ExitOK {
		s.t.Fatalf("writ %v: exit %d: %s%s", args, code, &out, &errs)
	}
	return out.Bytes()
}

// exported writes a bundle, which has to verify, and returns how many records are not in it yet.
func (s *system) exported(file string) int64 {
	s.t.Helper()
	done := decoded[struct {
		Pending int64 `json:"pending"`
	}](string(s.writ("audit", "export", "--data", s.dir, "--out", file, "--json")))
	trust := file + ".trust"
	if err := os.WriteFile(trust, s.writ("audit", "trust", "--data", s.dir), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.writ("audit", "verify", file, "--trust", trust)
	return done.Pending
}

// resultsOf are the results of intents as a bundle has them, by the position of the intent.
func resultsOf(t *testing.T, bundle string) map[int64]string {
	t.Helper()
	raw, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int64]string{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, len(raw)+1)
	for lines.Scan() {
		var line struct {
			Record struct {
				Kind     string                           `json:"kind"`
				Position int64                            `json:"position"`
				Parts    map[string]struct{ Text string } `json:"parts"`
			} `json:"record"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", lines.Text(), err))
		}
		if line.Record.Kind != "outcome" {
			continue
		}
		of := decoded[struct {
			Target int64 `json:"of"`
		}](line.Record.Parts["outcome"].Text).Target
		if of < 0 { // of the record before
			of += line.Record.Position
		}
		out[of] = line.Record.Parts["result"].Text
	}
	return out
}
