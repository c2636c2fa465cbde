package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/state/agents"
)

// updating is a model whose executor makes 25 updates in one reply: five of prices.
type updating struct{ *mind }

func (m updating) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	if req.Agent != agents.Executor {
		return m.mind.Respond(ctx, req, on)
	}
	out := &model.Response{Model: m.Name()}
	for n := range 25 {
		tool := "update"
		if n%5 == 4 {
			tool = "update_price"
		}
		out.Calls = append(out.Calls, model.Call{ID: fmt.Sprint("call_", n), Name: tool, Arguments: fmt.Sprintf(`{"outlet":%d}`, n)})
	}
	return out, nil
}

// TestUpdates: of 25 updates the server refuses one, and five wait for people. However the user asks,
// each is reported in its true state, and no model is asked to report them.
func TestUpdates(t *testing.T) {
	t.Parallel()
	no := false
	update := func(name string) skill {
		return skill{name: name, about: "Updates an outlet.", input: `{"type":"object","properties":{"outlet":{"type":"integer"}},"required":["outlet"]}`, hints: &mcp.ToolAnnotation{ReadOnlyHint: &no, IdempotentHint: &no}, do: func(input json.RawMessage) (any, error) {
			if string(input) == `{"outlet":7}` {
				return nil, errors.New("outlet 7 is closed")
			}
			return map[string]bool{"updated": true}, nil
		}}
	}
	shop := serveSkills(t, update("update"), update("update_price"))
	m := updating{&mind{plan: func(in planning) model.Call {
		s := catalog.PlanStep{Step: 1, Task: "update all outlets", ReturnSpec: catalog.ReturnSpec{Shape: "{updated: integer}", Reason: "told"}}
		for _, k := range in.Skills {
			s.Skills = append(s.Skills, k.Name)
		}
		return call("plan", marshalled(map[string]any{"steps": []catalog.PlanStep{s}}))
	}}}
	s := start(t, setup{Skills: []string{shop.url}, Model: m})
	s.holds("update_price")
	dan := s.addPerson("default", "dan", "user")
	ana := s.as("ana")
	const task = "Update all outlets"
	chat := func(stream bool) string {
		raw, _ := json.Marshal(map[string]any{"model": "planner", "stream": stream, "messages": []map[string]string{{"role": "user", "content": task}}})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Api-Key": {ana.key}, "X-User-Id": {ana.user}, "Content-Type": {"application/json"}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		type part struct{ Content string }
		var text strings.Builder
		read := func(raw []byte) {
			var got struct {
				Choices []struct{ Message, Delta part }
			}
			_ = json.Unmarshal(raw, &got) // [DONE] is none
			for _, c := range got.Choices {
				text.WriteString(c.Message.Content + c.Delta.Content)
			}
		}
		if !stream {
			raw, _ := io.ReadAll(resp.Body)
			read(raw)
			return text.String()
		}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			read(bytes.TrimPrefix(lines.Bytes(), []byte("data: ")))
		}
		return text.String()
	}
	for name, ask := range map[string]func() string{
		"JSON": func() string {
			var got struct{ Status, Response string }
			if status, p := s.call(ana, http.MethodPost, "/agent/run", map[string]string{"message": task}, &got); status != http.StatusAccepted || got.Status != "held" {
				t.Fatalf("HTTP %d %+v %+v", status, p, got)
			}
			return got.Response
		},
		"frames": func() (text string) {
			_, err := client.Client{URL: s.url, Key: dan.key}.Run(t.Context(), task, func(f client.Frame) error {
				if f.Event == string(bus.FramePendingApproval) {
					text = decoded[bus.PendingApprovalData](string(f.Data)).Text
				}
				return nil
			})
			if text == "" {
				t.Fatal(err)
			}
			return text
		},
		"chat":          func() string { return chat(false) },
		"streamed chat": func() string { return chat(true) },
	} {
		before := shop.count("update")
		text := ask()
		for _, want := range []string{"Waiting for approval (5):", "\n- update_price {\"outlet\":24}", "Done (19):", "\n- update {\"outlet\":23}", "Not carried out (1):\n- update {\"outlet\":7}: "} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", name, want, text)
			}
		}
		if n := shop.count("update") - before; n != 20 || shop.count("update_price") != 0 {
			t.Errorf("%s: %d updates, %d of prices", name, n, shop.count("update_price"))
		}
	}
	m.mu.Lock()
	asked := slices.Clone(m.requests)
	m.mu.Unlock()
	for _, r := range asked {
		if r.Agent == agents.Composer {
			t.Error("a model was asked to report what waits")
		}
	}
	for _, o := range s.intents("") {
		if o.Type == "plan.open" {
			s.call(ana, http.MethodDelete, "/agent/plans/"+o.Context.PlanID, nil, nil)
		}
	}
}

// TestNoSMS: no tool sends messages, and none seems to. The request ends as one that cannot be done.
func TestNoSMS(t *testing.T) {
	t.Parallel()
	const why = "No skill of this system sends messages. I can look up outlets."
	m := &mind{plan: func(planning) model.Call { return call("plan", marshalled(map[string]string{"infeasible": why})) }}
	s := start(t, setup{Skills: []string{serveShop(t).url}, Model: m})
	var got struct {
		Status, Response string
		Reason           string
	}
	status, p := s.call(s.as("ana"), http.MethodPost, "/agent/run", map[string]string{"message": "Send Ben an SMS: I am late"}, &got)
	if got.Status != "failed" || got.Response+got.Reason != why {
		t.Errorf("HTTP %d %+v %+v", status, p, got)
	}
	for _, r := range m.requests {
		for _, tool := range r.Tools {
			if tool.Name == "action" || strings.Contains(strings.ToLower(tool.Name), "sms") {
				t.Errorf("%s is offered", tool.Name)
			}
		}
	}
}
