package agentic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/agents"
)

// skillReturns is the output of a skill, by JSON Schema. The tools of models have no member for
// it.
type skillReturns struct {
	Tool   string          `json:"tool"`
	Schema json.RawMessage `json:"schema"`
}

// stepBlock is the step as the model reads it.
type stepBlock struct {
	catalog.PlanStep
	ReturnSchema json.RawMessage `json:"return_schema"`
}

// message returns the executor's message: the user's request, effects of other steps that are not
// done, the step, and its input results.
func (w *worker) message(ctx context.Context) (string, error) {
	var m blocks
	m.add("Request", w.req.Turn.withReminderDue(w.req.UserTask))
	if len(w.returns) > 0 {
		m.add("Returns", w.returns)
	}
	if len(w.req.Effects) > 0 {
		m.add("Effects", w.req.Effects)
	}
	m.add("Step", stepBlock{w.req.Step, w.schema})
	inputs := make([]labelledResult, len(w.req.Inputs))
	for i, in := range w.req.Inputs {
		var got catalog.ReadMemoryResult
		a, err := w.submit(ctx, "read_memory", catalog.ReadMemory{Key: in.Key}, &got)
		if err != nil {
			return "", err
		}
		name := inputLabel
		if len(inputs) > 1 {
			name = fmt.Sprintf("s%d", in.Step)
		}
		inputs[i] = w.keep(name, a.IntentID, got.Data, got.Reference)
	}
	switch len(inputs) {
	case 0:
	case 1:
		m.add("Input", inputs[0])
	default:
		m.add("Input", inputs)
	}
	return m.task(w.req.Step.Task), nil
}

// tools returns the skills that the step allows, and the built-in tools. The note is on them, for
// the prompt.
func (w *worker) tools(ctx context.Context) (all []*tool, note string, err error) {
	manifests := make([]catalog.Manifest, len(w.req.Step.Skills))
	for i, name := range w.req.Step.Skills {
		if _, err := w.submit(ctx, "skill.load", catalog.SkillLoad{Skill: name}, &manifests[i]); err != nil {
			return nil, "", err
		}
	}
	remember := newTool(tool{Tool: writeMemoryTool, output: true, call: called(w.remember)})
	remember.Tool = rememberTool(w.schema, w.req.Only && answerMember(w.req.Step) == "answer")
	builtin := []*tool{
		newTool(tool{Tool: readLinesTool, call: called(w.readLines)}),
		finishable(newTool(tool{Tool: execPythonTool, call: called(w.python)})),
		remember,
		newTool(tool{Tool: insufficientTool, output: true, call: called(func(_ context.Context, _ string, a insufficientArgs) (any, error) {
			w.stop = &stopError{a.Reason, a.Suggestion}
			return nil, nil
		})},
		),
	}
	taken := map[string]bool{}
	for _, t := range builtin {
		taken[t.Name] = true
	}
	for i, name := range agents.WireNames(manifests, taken) {
		m := manifests[i]
		all = append(all, finishable(w.skill(m, name)))
		if len(m.OutputSchema) > 0 {
			w.returns = append(w.returns, skillReturns{name, m.OutputSchema})
		}
	}
	note = effectsNote(all)
	return append(all, builtin...), note, nil
}

// maxAbout bounds the description of a skill, in bytes: servers truncate longer ones.
const maxAbout = 1000

// skillTool is a skill as a model reads it.
func skillTool(m catalog.Manifest, wire string) model.Tool {
	return model.Tool{Name: wire, Description: visible.Cut(m.Description, maxAbout), Schema: m.InputSchema, Pure: m.Effect == catalog.Pure}
}

// effectsNote says once which of an agent's skills change data: it names these or, if they are
// fewer, the others. A server's description of its tool cannot say otherwise.
func effectsNote(skills []*tool) string {
	var reads, changes []string
	for _, t := range skills {
		if name := "`" + t.Name + "`"; t.changes {
			changes = append(changes, name)
		} else {
			reads = append(reads, name)
		}
	}
	switch {
	case len(changes) == 0:
		return ""
	case len(reads) == 0, len(changes)+len(reads) > maxTools: // the prompt stays the same while others are shown
		return "Tools of servers may change data, and wait for approval."
	case len(changes) <= len(reads):
		return "These change data, and may wait for approval: " + strings.Join(changes, ", ")
	}
	return "Tools of servers change data, and may wait for approval, except: " + strings.Join(reads, ", ")
}

// skill returns a skill as a tool.
func (w *worker) skill(m catalog.Manifest, wire string) *tool {
	if renders(m) {
		return w.render(m, wire)
	}
	return &tool{
		Tool:  skillTool(m, wire),
		check: schemas.Tolerate(m.InputSchema).Schema,
		once:  m.Effect == catalog.Once, changes: m.Effect != catalog.Pure, lenient: m.Effect == catalog.Pure,
		call: func(ctx context.Context, label string, input json.RawMessage) (any, error) {
			args := catalog.SkillCall{Skill: m.Name, Input: input}
			if m.Effect == catalog.Once {
				if result, err, ok := w.earlierCall("skill.call", args, label); ok {
					return result, err
				}
			}
			w.say(progress{Skill: m.Name})
			got, a, err := w.called(ctx, args)
			if err != nil {
				return nil, err
			}
			w.sees(label, a)
			return w.keptAs(got.Status, label, a.IntentID, got.Output, got.Reference), nil
		},
	}
}

// readLines reads lines of a large result.
func (w *worker) readLines(ctx context.Context, _ string, a readLinesArgs) (any, error) {
	m, err := w.find(ctx, a.From)
	if err != nil {
		return nil, err
	}
	got := linesOf(m.inline, a)
	if m.ref != nil {
		_, err = w.submit(ctx, "read_lines", catalog.ReadLines{FileID: m.ref.FileID, Start: a.Start, N: a.N}, &got)
	}
	return readLinesResult{got.Lines, cutOf(got.More, got.Lines...)}, err
}

// readLinesResult are lines as a model reads them.
type readLinesResult struct {
	Lines []string `json:"lines"`
	Cut
}

// linesOf returns lines of an inline result: of its text, or of its JSON with a line for each
// member.
func linesOf(inline json.RawMessage, a readLinesArgs) catalog.ReadLinesResult {
	var text string
	if json.Unmarshal(inline, &text) != nil {
		var b bytes.Buffer
		_ = json.Indent(&b, inline, "", " ")
		text = b.String()
	}
	lines := strings.Split(text, "\n")
	lines = lines[min(a.Start, len(lines)):]
	return catalog.ReadLinesResult{Lines: lines[:min(a.N, len(lines))], More: len(lines) > a.N}
}

// python runs a script over one or several results.
func (w *worker) python(ctx context.Context, label string, a execPythonArgs) (any, error) {
	args := catalog.ExecPython{Script: a.Script}
	if a.From != "" {
		if len(a.Inputs) > 0 {
			return nil, mistaken("from or inputs, not both")
		}
		m, err := w.find(ctx, a.From)
		if err != nil {
			return nil, err
		}
		args.From = m.from()
	}
	for _, label := range a.Inputs {
		m, err := w.find(ctx, label)
		if err != nil {
			return nil, err
		}
		if args.Inputs == nil {
			args.Inputs = make(map[string]string)
		}
		args.Inputs[label] = m.from()
	}
	var got catalog.ExecPythonResult
	answer, err := w.submit(ctx, "exec_python", args, &got)
	if err != nil {
		return nil, err
	}
	return w.keep(label, answer.IntentID, got.Output, got.Reference), nil
}

// remember stores the result of the step. Everything that can be checked here is checked: a
// write_memory intent that breaks the contract ends the step.
func (w *worker) remember(ctx context.Context, _ string, a writeMemoryArgs) (any, error) {
	if (a.From != "") == (len(a.Data) > 0) {
		return nil, mistaken("from or data, one of the two")
	}
	args := catalog.WriteMemory{Label: label(w.req.Step.Task), Data: a.Data, Notes: a.Notes}
	inline := a.Data
	if a.From != "" {
		m, err := w.find(ctx, a.From)
		if err != nil {
			return nil, err
		}
		args.From, inline = m.intentID, m.inline
	}
	if len(inline) > 0 {
		var wrong []string
		for _, v := range w.check.ValidateWithin(ctx, inline) {
			wrong = append(wrong, v.Pointer+": "+v.Reason)
		}
		if len(wrong) > 0 {
			return nil, &mistake{wrong[:min(len(wrong), maxViolations)]}
		}
	}
	var got catalog.WriteMemoryResult
	_, err := w.submit(ctx, "write_memory", args, &got)
	w.key = got.Key
	if w.req.Only && a.Answer != "" {
		w.answer = visible.Cut(guarded(a.Answer), maxResponse)
	}
	return nil, err
}

// rememberLast is remember once the model has ended: a refusal that passes is waited for until the
// deadline of the step.
func (w *worker) rememberLast(ctx context.Context, a writeMemoryArgs) error {
	return w.cfg.lasting(ctx, func() error {
		_, err := w.remember(ctx, "", a)
		return err
	})
}

var notLabel = regexp.MustCompile(`[^a-z0-9]+`)

// label names a result after the step's task: at most 40 characters of [a-z0-9_].
func label(task string) string {
	s := strings.Trim(notLabel.ReplaceAllString(strings.ToLower(task), "_"), "_")
	if len(s) > 40 {
		s = strings.TrimRight(s[:40], "_")
	}
	if s == "" {
		return "result"
	}
	return s
}
