package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// mind is a language model that a test plays: one function for each decision. Without
// one, the planner loads all skills that it is offered, and the offline model decides.
type mind struct {
	pick   []string // the tools of the skills to load; nil: all
	plan   func(planning) model.Call
	act    func(working) action
	script func(scripting) string
	broken func(model.Request) error // the model itself fails; nil: never

	mu       sync.Mutex // guards requests
	requests []model.Request
}

// planning is what a planner's model sees.
type planning struct {
	Task       string
	Skills     []catalog.Manifest
	FirstStep  int
	MaxSteps   int
	Completed  []completed
	Failed     *failed
	Violations []string // of its last plan
}

type completed struct {
	Step   catalog.PlanStep `json:"step"`
	Result json.RawMessage  `json:"result"`
}

type failed struct {
	Step          catalog.PlanStep     `json:"step"`
	Trigger       string               `json:"trigger"`
	Reason        string               `json:"reason"`
	Suggestion    string               `json:"suggestion"`
	IntentHistory []catalog.PastIntent `json:"facts"`
}

// working is what an executor's model sees.
type working struct {
	Step   int
	Task   string
	Skills []string // of the step
	Input  json.RawMessage
	Labels []string // of several inputs
	Calls  []called // of skills, so far
}

// called is one call of a skill with its result, or why there is none.
type called struct {
	Skill  string
	Output json.RawMessage
	Error  string
}

// scripting is what an executor's model sees that writes a script; Error is what
// became of the script before.
type scripting struct {
	Task  string
	Error string
}

// action is what an executor's model decides: a call, or extract or finish.
type action struct {
	call    model.Call
	extract bool // by a script
	finish  bool // with the last result
}

func (m *mind) Name() string { return "test:scripted" }

func (m *mind) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	kept := req
	kept.Messages = slices.Clone(req.Messages)
	m.mu.Lock()
	m.requests = append(m.requests, kept)
	m.mu.Unlock()
	if m.broken != nil {
		if err := m.broken(req); err != nil {
			return nil, err
		}
	}
	switch {
	case req.Agent == agents.Planner && m.plan != nil:
		return m.reply(req, m.planned(req)), nil
	case req.Agent == agents.Executor && m.act != nil:
		return m.reply(req, m.acted(req)), nil
	}
	return offline.Model{}.Respond(ctx, req, on)
}

func (m *mind) reply(req model.Request, c model.Call) *model.Response {
	c.ID = fmt.Sprintf("call_%d", len(req.Messages))
	return &model.Response{Calls: []model.Call{c}, Model: m.Name()}
}

func (m *mind) planned(req model.Request) model.Call {
	in, loaded := planningOf(req)
	if !loaded {
		var names []string
		for _, s := range offeredSkills(req) {
			if m.pick == nil || slices.Contains(m.pick, toolOf(s.Name)) {
				names = append(names, s.Name)
			}
		}
		if len(names) > 0 {
			return call("load_skill", marshalled(map[string]any{"skills": names}))
		}
	}
	return m.plan(in)
}

// planningOf is the content of a planner's request; loaded is false if it has not loaded skills
// yet.
func planningOf(req model.Request) (in planning, loaded bool) {
	limits := blockOf[struct {
		First int `json:"first_step"`
		Max   int `json:"max_steps"`
	}](req, "Limits")
	so := blockOf[struct {
		Completed []completed `json:"completed"`
		Failed    *failed     `json:"failed"`
	}](req, "Plan")
	in = planning{Task: taskOf(req), FirstStep: limits.First, MaxSteps: limits.Max, Completed: so.Completed, Failed: so.Failed}
	for _, x := range exchanges(req) {
		switch x.call.Name {
		case "load_skill":
			loaded = true
			in.Skills = append(in.Skills, decoded[struct {
				Skills []catalog.Manifest `json:"skills"`
			}](x.result).Skills...)
		case "plan":
			in.Violations = x.violations()
		}
	}
	return in, loaded
}

func (m *mind) acted(req model.Request) model.Call {
	in := workingOf(req)
	all := exchanges(req)
	last := inputLabel
	for _, x := range all {
		if label := x.label(); label != "" {
			last = label
		}
	}
	if n := len(all); n > 0 {
		x := all[n-1]
		wrong := x.error() + strings.Join(x.violations(), "; ")
		switch {
		case x.call.Name == "exec_python" && wrong == "":
			return write(x.label())
		case x.call.Name == "exec_python" || x.call.Name == "write_memory" && wrong != "" && m.script != nil:
			return m.scripted(in, lastData(all, last), wrong)
		}
	}
	switch a := m.act(in); {
	case a.extract:
		return m.scripted(in, last, "")
	case a.finish:
		return write(last)
	default:
		return a.call
	}
}

// lastData is the label of the last result that is no script's.
func lastData(all []exchange, last string) string {
	for _, x := range slices.Backward(all) {
		if x.call.Name != "exec_python" && x.label() != "" {
			return x.label()
		}
	}
	if len(all) > 0 && all[0].call.Name == "exec_python" {
		return inputLabel
	}
	return last
}

func (m *mind) scripted(in working, from, wrong string) model.Call {
	if m.script == nil {
		return call("insufficient", `{"reason":"no script can be written"}`)
	}
	return call("exec_python", marshalled(map[string]string{"script": m.script(scripting{in.Task, wrong}), "from": from}))
}

func workingOf(req model.Request) working {
	s := blockOf[catalog.PlanStep](req, "Step")
	in := working{Step: s.Step, Task: s.Task, Skills: s.Skills}
	type input struct {
		Label  string          `json:"label"`
		Result json.RawMessage `json:"result"`
	}
	if raw := blockOf[json.RawMessage](req, "Input"); bytes.HasPrefix(raw, []byte("[")) {
		for _, one := range decoded[[]input](string(raw)) {
			in.Labels = append(in.Labels, one.Label)
		}
	} else {
		in.Input = blockOf[input](req, "Input").Result
	}
	for _, x := range exchanges(req) {
		switch x.call.Name {
		case "exec_python", "write_memory", "read_lines", "insufficient":
		default:
			in.Calls = append(in.Calls, called{x.call.Name, decoded[struct {
				Result json.RawMessage `json:"result"`
			}](x.result).Result, x.error() + strings.Join(x.violations(), "; ")})
		}
	}
	return in
}

const inputLabel = "r0"

// exchange is a call and its result.
type exchange struct {
	call   model.Call
	result string
}

func exchanges(req model.Request) (out []exchange) {
	for _, m := range req.Messages {
		for _, c := range m.Calls {
			for _, r := range req.Messages {
				if r.Role == model.RoleTool && r.CallID == c.ID {
					out = append(out, exchange{c, r.Text})
				}
			}
		}
	}
	return out
}

func (x exchange) label() string {
	return decoded[struct {
		Label string `json:"label"`
	}](x.result).Label
}

func (x exchange) violations() []string {
	return decoded[struct {
		Violations []string `json:"violations"`
	}](x.result).Violations
}

func (x exchange) error() string {
	e := decoded[struct {
		Error *struct{ Code, Reason string } `json:"error"`
	}](x.result).Error
	if e == nil {
		return ""
	}
	return e.Code + ": " + e.Reason
}

func decoded[T any](text string) (v T) {
	_ = json.Unmarshal([]byte(text), &v) // what does not fit stays empty
	return v
}

// blockOf is a part of the message that a request begins with.
func blockOf[T any](req model.Request, name string) T {
	_, after, _ := strings.Cut(messageOf(req), "["+name+"]\n")
	line, _, _ := strings.Cut(after, "\n")
	return decoded[T](line)
}

func taskOf(req model.Request) string {
	_, task, _ := strings.Cut(messageOf(req), "[Task]\n")
	return task
}

// messageOf is the message of a turn, after the history.
func messageOf(req model.Request) string {
	for _, m := range req.Messages {
		if m.Role == model.RoleUser && strings.Contains(m.Text, "[Task]\n") {
			return m.Text
		}
	}
	return ""
}

// requestsOf are the requests of an agent, as f reads them.
func requestsOf[In any](m *mind, agent string, f func(model.Request) In) (out []In) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		if r.Agent == agent {
			out = append(out, f(r))
		}
	}
	return out
}

// plannings are the planner's requests after it had loaded skills.
func (m *mind) plannings() []planning {
	all := requestsOf(m, agents.Planner, func(r model.Request) *planning {
		in, loaded := planningOf(r)
		if !loaded {
			return nil
		}
		return &in
	})
	var out []planning
	for _, in := range all {
		if in != nil {
			out = append(out, *in)
		}
	}
	return out
}

// scriptErrors are the errors of a turn's scripts, one of each.
func (m *mind) scriptErrors() (out []string) {
	all := requestsOf(m, agents.Executor, exchanges)
	if len(all) == 0 {
		return nil
	}
	for _, x := range slices.MaxFunc(all, func(a, b []exchange) int { return len(a) - len(b) }) {
		if wrong := x.error() + strings.Join(x.violations(), "; "); wrong != "" {
			out = append(out, wrong)
		}
	}
	return out
}

// requested reports whether any request contained a text.
func (m *mind) requested(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.requests, func(r model.Request) bool { return holds(r, text) })
}

// holds reports whether a request contains a text, plain or inside JSON.
func holds(r model.Request, text string) bool {
	quoted := strings.Trim(marshalled(text), `"`)
	has := func(s string) bool { return strings.Contains(s, text) || strings.Contains(s, quoted) }
	return has(r.System) || slices.ContainsFunc(r.Messages, func(m model.Message) bool {
		return has(m.Text) || slices.ContainsFunc(m.Calls, func(c model.Call) bool { return has(c.Arguments) })
	})
}

func marshalled(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // plain data of a test
	}
	return strings.TrimSpace(b.String())
}

// Decisions.

func call(name, args string) model.Call { return model.Call{Name: name, Arguments: args} }

func write(label string) model.Call {
	return call("write_memory", marshalled(map[string]string{"from": label}))
}

// use calls a skill, by its id or by the name of its tool.
func use(skill, input string) action { return action{call: call(toolOf(skill), input)} }

// toolOf is the name of a skill's tool.
func toolOf(id string) string { return id[strings.IndexByte(id, '.')+1:] }

var (
	extract = action{extract: true}
	finish  = action{finish: true}
)

func insufficient(reason, suggestion string) action {
	return action{call: call("insufficient", marshalled(map[string]string{"reason": reason, "suggestion": suggestion}))}
}

func infeasible(why string) model.Call {
	return call("plan", marshalled(map[string]string{"infeasible": why}))
}

func steps(list ...catalog.PlanStep) model.Call {
	return call("plan", marshalled(map[string]any{"steps": list}))
}

func step(n int, task, skill string, from int, shape string) catalog.PlanStep {
	s := catalog.PlanStep{Step: n, Task: task, Skills: []string{}, ReturnSpec: catalog.ReturnSpec{Shape: shape, Reason: "the answer"}}
	if from > 0 {
		s.Inputs = []int{from}
	}
	if skill != "" {
		s.Skills = append(s.Skills, skill)
	}
	return s
}

// stepsOf are the steps of a plan, so that a test can change them.
func stepsOf(c model.Call) []catalog.PlanStep {
	return decoded[struct {
		Steps []catalog.PlanStep `json:"steps"`
	}](c.Arguments).Steps
}

var _ model.Model = (*mind)(nil)

// TestMind: the model that tests play reads a request as the agents write it.
func TestMind(t *testing.T) {
	t.Parallel()
	req := model.Request{Agent: agents.Executor, Messages: []model.Message{
		{Role: model.RoleSystem, Text: "[Context]"},
		{Role: model.RoleUser, Text: "[Step]\n{\"step\":2,\"task\":\"count\",\"skills\":[\"a\"]}\n\n[Input]\n{\"label\":\"r0\",\"result\":[1]}\n\n[Task]\ncount"},
	}}
	m := &mind{act: func(in working) action {
		if in.Step != 2 || in.Task != "count" || string(in.Input) != "[1]" {
			t.Errorf("%+v", in)
		}
		return finish
	}}
	got, err := m.Respond(t.Context(), req, nil)
	if err != nil || got.Calls[0].Arguments != `{"from":"r0"}` {
		t.Errorf("%+v, error %v", got, err)
	}
}
