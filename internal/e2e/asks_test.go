package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// cast is a language model with a part for each agent. It counts the usage that it reports.
type cast struct {
	parts map[string]func(context.Context, model.Request) *model.Response

	mu   sync.Mutex // guards used
	used []catalog.Usage
}

func (*cast) Name() string { return "test:cast" }

func (c *cast) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	part := c.parts[req.Agent]
	if part == nil {
		return nil, fmt.Errorf("no part for %s", req.Agent)
	}
	r := part(ctx, req)
	if r == nil {
		return nil, &model.Error{Reason: "Traceback (most recent call last): it broke"}
	}
	r.Usage = model.Usage{InputTokens: 10 * len(req.Messages), OutputTokens: 7}
	if on != nil && r.Text != "" {
		on(model.Event{Text: r.Text})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = catalog.AddUsage(c.used, catalog.Usage{Agent: req.Agent, Model: c.Name(), Calls: 1, InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens})
	return r, nil
}

// others that the desk may ask, by name and title.
var others = map[string]string{"tickets": "Tickets", "orders": "Orders", "billing": "Billing"}

// desk is an agent's part that asks some others at once, and returns their answers in turn, or that
// one cannot be reached.
func desk(ask ...string) func(context.Context, model.Request) *model.Response {
	return func(_ context.Context, req model.Request) *model.Response {
		told := exchanges(req)
		if len(told) == 0 {
			var calls []model.Call
			for _, name := range ask {
				calls = append(calls, call("ask_"+name, marshalled(map[string]string{"input_text": "What about " + name + "?"})))
			}
			return replying(req, calls...)
		}
		var text []string
		for _, x := range told {
			got := decoded[struct{ Status, About, Text string }](x.result)
			switch {
			case got.Status == "unavailable":
				text = append(text, got.About+" cannot be reached.")
			case got.Text != "":
				text = append(text, got.Text)
			}
		}
		return &model.Response{Text: strings.Join(text, " ")}
	}
}

// deskFiles are the agents: the desk, and three that it may ask.
func deskFiles(t *testing.T, limits string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"desk": "name: desk\ndescription: Answers customers.\nsub_agents: [tickets, orders, billing]\n" + limits}
	for name, display := range others {
		files[name] = fmt.Sprintf("name: %s\ndisplay_name: %s\ndescription: Knows %s.\ntools: [{server: crm, name: add_note}, {server: crm, name: list_tickets}]\n", name, display, name)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// askDesk has the desk answer a turn in process.
func askDesk(t *testing.T, m model.Model, skills, limits string) turn {
	t.Helper()
	s := start(t, setup{Model: m, Skills: []string{skills}, Agents: deskFiles(t, limits)})
	s.holdNothing()
	return s.askAgent(s.as("local"), "desk", "How are things?")
}

// child is what the record has of one ask.
type child struct {
	agent         string
	began, ended  time.Time
	status, reply string
}

// children are the asks of a turn, by agent, and the step.finish of the task that asked.
func children(t *testing.T, list []intent) (map[string]child, catalog.StepFinish) {
	t.Helper()
	byTask := map[string]child{}
	var own catalog.StepFinish
	for _, o := range list {
		switch {
		case o.Type == "agent.ask" && o.Decision.Code == "OK":
			a := decoded[catalog.AgentAsk](string(o.Args))
			byTask[a.TaskID] = child{agent: a.Agent, began: o.At}
		case o.Type == "step.finish" && o.Decision.Code == "OK":
			f := decoded[catalog.StepFinish](string(o.Args))
			c, ok := byTask[f.TaskID]
			if !ok {
				own = f
				continue
			}
			c.ended, c.status, c.reply = o.At, f.Status, f.Reply
			byTask[f.TaskID] = c
		}
	}
	out := map[string]child{}
	for _, c := range byTask {
		if was, twice := out[c.agent]; !twice || was.began.Before(c.began) {
			out[c.agent] = c
		}
	}
	return out, own
}

// together is a part that waits for others before it answers.
func together(n int, text string, after time.Duration, all *gathering) func(context.Context, model.Request) *model.Response {
	return func(ctx context.Context, _ model.Request) *model.Response {
		all.come(n)
		if after > 0 { // how long its model takes
			select {
			case <-time.After(after):
			case <-ctx.Done():
			}
		}
		return &model.Response{Text: text}
	}
}

type gathering struct {
	mu   sync.Mutex
	n    int
	full chan struct{}
}

func (g *gathering) come(n int) {
	g.mu.Lock()
	if g.n++; g.n == n {
		close(g.full)
	}
	g.mu.Unlock()
	<-g.full
}

// TestAskSideBySide: one, two and three agents are asked and work at the same time, of which the
// record has the times; a slow one delays no other. The answer has all their answers, and the plan
// counts all their usage.
func TestAskSideBySide(t *testing.T) {
	t.Parallel()
	names := []string{"tickets", "orders", "billing"}
	_, skills := serveCRM(t)
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			all := &gathering{full: make(chan struct{})}
			m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{"desk": desk(names[:n]...)}}
			var want []string
			for i, name := range names[:n] {
				text := "All is well with " + name + "."
				m.parts[name] = together(n, text, time.Duration(i)*400*time.Millisecond, all)
				want = append(want, text)
			}
			got := askDesk(t, m, skills, "")
			if got.Status != string(catalog.PlanComplete) || got.Response != strings.Join(want, " ") {
				t.Fatalf("%+v", got)
			}
			asked, _ := children(t, got.Intents)
			if len(asked) != n {
				t.Fatalf("asked %+v", asked)
			}
			for a, x := range asked {
				if x.status != "done" {
					t.Errorf("%+v", x)
				}
				for _, y := range asked {
					if !x.began.Before(y.ended) {
						t.Errorf("%s began at %s, when %s had ended at %s", a, x.began, y.agent, y.ended)
					}
				}
			}
			for i := 1; i < n; i++ {
				if fast, slow := asked[names[i-1]].ended, asked[names[i]].ended; slow.Sub(fast) < 200*time.Millisecond {
					t.Errorf("%s ended at %s and the slower %s at %s", names[i-1], fast, names[i], slow)
				}
			}
			for i := range got.Plan.Usage {
				got.Plan.Usage[i].LatencyMS = 0
			}
			if d := gocmp.Diff(m.used, got.Plan.Usage); d != "" {
				t.Errorf("usage (-want +got):\n%s", d)
			}
		})
	}
}

// TestAskTooMany: of three asks two are signed; the record reports the third.
func TestAskTooMany(t *testing.T) {
	t.Parallel()
	_, skills := serveCRM(t)
	m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{"desk": desk("tickets", "orders", "billing")}}
	for name := range others {
		m.parts[name] = func(context.Context, model.Request) *model.Response { return &model.Response{Text: name + "."} }
	}
	got := askDesk(t, m, skills, "limits: {max_fan_out: 2}\n")
	asked, own := children(t, got.Intents)
	if len(asked) != 2 || asked["billing"].agent != "" || !slices.Equal(own.Dropped, []string{"billing"}) || got.Response != "tickets. orders." {
		t.Errorf("asked %+v, step.finish %+v, answer %q", asked, own, got.Response)
	}
	if n := len(got.called("agent.ask")); n != 2 {
		t.Errorf("%d intents", n)
	}
}

// TestAskSomeFail: one agent hangs, one breaks, one answers. The answer describes that in words,
// without a code or a trace.
func TestAskSomeFail(t *testing.T) {
	t.Parallel()
	_, skills := serveCRM(t)
	m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{
		"desk":    desk("tickets", "orders", "billing"),
		"tickets": func(ctx context.Context, _ model.Request) *model.Response { <-ctx.Done(); return nil },
		"orders":  func(context.Context, model.Request) *model.Response { return nil },
		"billing": func(context.Context, model.Request) *model.Response { return &model.Response{Text: "All is paid."} },
	}}
	got := askDesk(t, m, skills, "limits: {ask_time_limit_sec: 8}\n")
	if want := "Tickets cannot be reached. Orders cannot be reached. All is paid."; got.Response != want || got.Status != string(catalog.PlanComplete) {
		t.Fatalf("%+v", got)
	}
	asked, _ := children(t, got.Intents)
	if asked["tickets"].status != "unavailable" || asked["orders"].status != "failed" || asked["billing"].status != "done" {
		t.Errorf("asked %+v", asked)
	}
	if n := len(got.called("agent.ask")); n != 3 {
		t.Errorf("%d asks: one was tried again", n)
	}
	if took := asked["tickets"].ended.Sub(asked["tickets"].began); took < time.Second || took > time.Minute {
		t.Errorf("the one that hangs was waited for %s", took)
	}
}

// noting is the part of an agent that notes something, and answers once it is noted.
func noting(req model.Request) *model.Response {
	for _, x := range exchanges(req) {
		if strings.Contains(x.result, `"result"`) {
			return &model.Response{Text: "Noted."}
		}
	}
	return replying(req, call(offered(req, "add_note").Name, `{"customer":"C-007","text":"called"}`))
}

// TestChildAgentsBothNote: equal calls of two asked agents that cannot be undone are two calls.
func TestChildAgentsBothNote(t *testing.T) {
	t.Parallel()
	records, skills := serveCRM(t)
	both := func(_ context.Context, req model.Request) *model.Response { return noting(req) }
	m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{"desk": desk("tickets", "orders"), "tickets": both, "orders": both}}
	got := askDesk(t, m, skills, "")
	if n := records.Calls("add_note"); n != 2 || got.Response != "Noted. Noted." {
		t.Errorf("%d notes, answer %q", n, got.Response)
	}
	for _, o := range got.called("skill.call") {
		if line(o) != "skill.call OK" || o.Context.Ask == "" || o.Context.Occurrence != 0 {
			t.Errorf("%s in %+v", line(o), o.Context)
		}
	}
}

// TestKillBetweenAsks: writ dies when one asked agent has its effect and another one is at
// work. The turn continues, the first is not repeated, and the effects are those of a turn
// that was not disturbed.
func TestKillBetweenAsks(t *testing.T) {
	for name, killed := range map[string]bool{"undisturbed": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			records, skills := serveCRM(t)
			noted, hanging := make(chan struct{}), make(chan struct{})
			var once sync.Once
			dead := !killed
			m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{
				"desk": desk("tickets", "orders"),
				"tickets": func(_ context.Context, req model.Request) *model.Response {
					r := noting(req)
					if r.Text != "" {
						once.Do(func() { close(noted) })
					}
					return r
				},
				"orders": func(ctx context.Context, req model.Request) *model.Response {
					if !dead {
						close(hanging)
						<-ctx.Done()
						return &model.Response{Text: "Nobody hears this."}
					}
					return noting(req)
				},
			}}
			t.Setenv("AGENT_REGISTRY_DIR", deskFiles(t, ""))
			x := boot(t, m, skills)
			x.holdNothing()
			id := x.post(`{"stream":true,"agent":"desk","message":"How are things?"}`, accepted)
			<-noted
			if killed {
				<-hanging
				x.kill()
				dead = true
				x.start()
			}
			v := x.finished(id)
			if v.Status != catalog.PlanComplete || v.Response != "Noted. Noted." {
				t.Errorf("plan %+v", v)
			}
			if n := records.Calls("add_note"); n != 2 {
				t.Errorf("%d notes", n)
			}
			asks := map[string]int{}
			for _, o := range x.records(id) {
				if o.Type == "agent.ask" {
					asks[decoded[catalog.AgentAsk](string(o.Args)).Agent+" "+o.Context.Call]++
				}
			}
			if want := map[bool]int{false: 1, true: 2}[killed]; asks["orders 1.1"] != want || asks["tickets 1.0"] == 0 || len(asks) != 2 {
				t.Errorf("asked %v", asks)
			}
		})
	}
}

// TestAskWithPriorContext: an agent asked in the next turn gets the results of this one, except
// from its own work.
func TestAskWithPriorContext(t *testing.T) {
	t.Parallel()
	_, skills := serveCRM(t)
	var next []string
	m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{
		"desk": func(ctx context.Context, req model.Request) *model.Response { return desk(next...)(ctx, req) },
	}}
	for name := range others {
		m.parts[name] = func(context.Context, model.Request) *model.Response { return &model.Response{Text: name + " is well."} }
	}
	s := start(t, setup{Model: m, Skills: []string{skills}, Agents: deskFiles(t, "")})
	who := s.as("local")
	who.session = "talk"
	next = []string{"orders"}
	s.askAgent(who, "desk", "How are the orders?")
	next = []string{"orders", "billing"}
	got := s.askAgent(who, "desk", "And the bills?")
	for _, o := range got.called("agent.ask") {
		a := decoded[catalog.AgentAsk](string(o.Args))
		told := strings.Contains(a.Context.PriorContext, "orders is well.") && strings.Contains(a.Context.PriorContext, "How are the orders?")
		if told != (a.Agent == "billing") || a.Context.EpisodeID != "talk" {
			t.Errorf("%s is told %+v", a.Agent, a.Context)
		}
	}
	if n := len(got.called("agent.ask")); n != 2 {
		t.Errorf("%d asks", n)
	}
}

// TestAskIsShown: an asked agent's text is streamed, with its name and apart from the answer: as an
// event of its own, and on OpenAI's routes beside the chunks.
func TestAskIsShown(t *testing.T) {
	t.Parallel()
	_, skills := serveCRM(t)
	m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{
		"desk":   func(ctx context.Context, req model.Request) *model.Response { return desk("orders")(ctx, req) },
		"orders": func(context.Context, model.Request) *model.Response { return &model.Response{Text: "Three are late."} },
	}}
	s := start(t, setup{Model: m, Skills: []string{skills}, Agents: deskFiles(t, "")})
	for path, body := range map[string]string{
		"/agent/run":           `{"agent":"desk","stream":true,"message":"Orders?"}`,
		"/chat/talk":           `{"messages":[{"id":"m1","role":"user","content":"Orders?"}]}`,
		"/v1/chat/completions": `{"model":"desk","stream":true,"messages":[{"role":"user","content":"Orders?"}]}`,
		"/v1/responses":        `{"model":"desk","stream":true,"input":"Orders?"}`,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "X-Api-Key": s.key, "Authorization": "Bearer " + s.key, "X-Agent-Schema-Name": "desk"} {
			req.Header.Set(name, value)
		}
		if path != "/v1/chat/completions" && path != "/v1/responses" {
			req.Header.Del("Authorization")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: HTTP %d %v: %s", path, resp.StatusCode, err, raw)
		}
		asked := 0
		for _, data := range strings.Split(string(raw), "\ndata: ") {
			if strings.Contains(data, `"kind":"child_content"`) && strings.Contains(data, `"text":"Three are late."`) && strings.Contains(data, `"agent":"orders"`) {
				asked++
				if strings.Contains(data, `"content":"Three`) || strings.Contains(data, `"delta":"Three`) {
					t.Errorf("%s: it is part of the answer: %s", path, data)
				}
			}
		}
		if asked != 1 {
			t.Errorf("%s: shown %d times:\n%s", path, asked, raw)
		}
	}
}

// TestChildCallWaits: a call of an asked agent that waits for people holds the turn, which reports
// the completed work. After approval that agent is asked again under the same call and continues;
// the others are not asked again, and the call is made once.
func TestChildCallWaits(t *testing.T) {
	t.Parallel()
	records, skills := serveCRM(t)
	m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{
		"desk": func(ctx context.Context, req model.Request) *model.Response {
			if len(req.Tools) == 0 {
				return &model.Response{Text: "Billing is well; a note waits."}
			}
			return desk("tickets", "billing")(ctx, req)
		},
		"tickets": func(_ context.Context, req model.Request) *model.Response {
			if len(req.Tools) == 0 {
				return &model.Response{Text: "My note waits."}
			}
			return noting(req)
		},
		"billing": func(context.Context, model.Request) *model.Response { return &model.Response{Text: "Billing is well."} },
	}}
	s := start(t, setup{Model: m, Skills: []string{skills}, Agents: deskFiles(t, "")})
	ben, _, _ := s.holds("crm.add_note")
	var held heldTurn
	if status, p := s.call(s.as("local"), http.MethodPost, "/agent/run", map[string]string{"message": "How are things?", "agent": "desk"}, &held); status != http.StatusAccepted || held.Approval.Type != "skill.call" {
		t.Fatalf("HTTP %d %+v %+v", status, p, held)
	}
	if n := records.Calls("add_note"); n != 0 {
		t.Fatalf("%d notes before anybody agreed", n)
	}
	if got, p := s.decide(ben, held.Approval.IntentID, "approve", ""); got.State != catalog.ApprovalReleased {
		t.Fatalf("%+v %+v", got, p)
	}
	deadline := time.After(patience)
	v := s.planOf(s.as("local"), held.PlanID)
	for ; v.CompletedAt == nil; v = s.planOf(s.as("local"), held.PlanID) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-deadline:
			t.Fatalf("the plan does not end: %+v", v)
		}
	}
	if v.Response != "Noted. Billing is well." || records.Calls("add_note") != 1 {
		t.Errorf("%d notes, plan %+v", records.Calls("add_note"), v)
	}
	asks := map[string]int{}
	for _, o := range s.intents(held.PlanID) {
		if o.Type == "agent.ask" {
			asks[decoded[catalog.AgentAsk](string(o.Args)).Agent+" "+o.Context.Call]++
		}
	}
	if d := gocmp.Diff(map[string]int{"tickets 1.0": 2, "billing 1.1": 1}, asks); d != "" {
		t.Errorf("asks (-want +got):\n%s", d)
	}
}

// askAgent is ask for an agent.
func (s *system) askAgent(who person, agent, message string) turn {
	s.t.Helper()
	var out turn
	var p problem
	out.HTTP, p = s.call(who, http.MethodPost, "/agent/run", map[string]string{"message": message, "agent": agent}, &out)
	return s.readTurn(who, message, out, p)
}
