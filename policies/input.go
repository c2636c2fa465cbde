package policies

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// Input is the policy's input for an intent (schemas/policy_input.schema.json). It is pure: the
// same intent and decision inputs give the same document. The grant is left out: the actor has
// been determined before policy is evaluated.
func Input(e *intents.Envelope, f intents.DecisionInputs) map[string]any {
	return newSubject(e, &f).document()
}

// subject is what the input of an intent is made of. A decision looks at a few of its values only.
type subject struct {
	env    *intents.Envelope
	inputs *intents.DecisionInputs
	args   any           // with every referenced input in place, and the skill's id
	tool   string        // the name of a skill's tool, if the intent names the skill by it
	hidden []hiddenInput // that marks stand for in args
}

func newSubject(e *intents.Envelope, f *intents.DecisionInputs) *subject {
	s := &subject{env: e, inputs: f}
	s.args, s.hidden = withInputs(e.DecodedArgs(), f)
	if f.Skill == nil || f.Skill.Digest == "" {
		return s
	}
	// A skill's id replaces the name of its tool, so that the name cannot bypass a rule about the id.
	if name := e.StringArg("skill"); (intents.Pin{Skill: f.Skill.Name}).OfTool(name) {
		args, _ := s.args.(map[string]any)
		args = maps.Clone(args)
		args["skill"] = f.Skill.Name
		s.args, s.tool = args, name
	}
	return s
}

// members of the input, in the order of their names.
var members = []member{
	{name: "actor", fields: fields{
		{"roles", func(s *subject) any { return s.inputs.Roles }},
		{"tenant", func(s *subject) any { return s.env.Principal().Tenant }},
		{"user_id", func(s *subject) any { return s.env.Principal().UserID }},
	}},
	{name: "approvals", value: func(s *subject) any { return approvalsInput(s.inputs.Approvals) }},
	{name: "constraints", fields: fields{
		{"audience", func(s *subject) any { return s.env.Constraints().Audience }},
		{"capabilities", func(s *subject) any { return s.env.Constraints().Capabilities }},
		{"idempotency_key", func(s *subject) any { return s.env.Constraints().IdempotencyKey }},
		{"issued_at", func(s *subject) any { return s.env.Constraints().IssuedAt }},
		{"ttl_sec", func(s *subject) any { return s.env.Constraints().TTLSec }},
	}},
	{name: "context", fields: fields{ // those that the intent carries
		{"agent", func(s *subject) any { return agentInput(s.env.Context().Agent) }},
		{"ask", func(s *subject) any { return text(s.env.Context().Ask) }},
		{"call", func(s *subject) any { return text(s.env.Context().Call) }},
		{"cause", func(s *subject) any { return text(s.env.Context().Cause) }},
		{"labels", func(s *subject) any { return labelsInput(s.env.Context().Labels) }},
		{"node_id", func(s *subject) any { return text(s.env.Context().NodeID) }},
		{"occurrence", func(s *subject) any { return number(s.env.Context().Occurrence) }},
		{"plan_id", func(s *subject) any { return text(s.env.Context().PlanID) }},
		{"revision", func(s *subject) any { return number(s.env.Context().Revision) }},
		{"run_id", func(s *subject) any { return text(s.env.Context().RunID) }},
		{"session_id", func(s *subject) any { return text(s.env.Context().SessionID) }},
		{"step", func(s *subject) any { return number(s.env.Context().Step) }},
		{"task_id", func(s *subject) any { return text(s.env.Context().TaskID) }},
		{"turn_id", func(s *subject) any { return text(s.env.Context().TurnID) }},
	}},
	{name: "intent", fields: fields{
		{"args", func(s *subject) any { return present{s.args} }},
		{"effect", func(s *subject) any { return text(s.inputs.Effect) }},
		{"type", func(s *subject) any { return s.env.Type() }},
	}},
	{name: "now", value: func(s *subject) any { return s.inputs.Now }},
	{name: "patch", missing: func(s *subject) bool { return s.inputs.Patch == nil }, fields: fields{
		{"nodes", func(s *subject) any { return nodesInput(s.inputs.Patch.Nodes) }},
		{"rewired", func(s *subject) any { return s.inputs.Patch.Rewired }},
	}},
	{name: "plan", missing: func(s *subject) bool { return s.inputs.Plan == nil }, fields: fields{
		{"by_agent", func(s *subject) any { return yes(s.inputs.Plan.ByAgent) }},
		{"epoch", func(s *subject) any { return s.inputs.Plan.Epoch }},
		{"plan_id", func(s *subject) any { return s.inputs.Plan.PlanID }},
		{"replan_count", func(s *subject) any { return s.inputs.Plan.ReplanCount }},
		{"revision", func(s *subject) any { return s.inputs.Plan.Revision }},
		{"status", func(s *subject) any { return s.inputs.Plan.Status }},
		{"steps", func(s *subject) any { return s.inputs.Plan.Steps }},
	}},
	{name: "signer", fields: fields{
		{"kid", func(s *subject) any { return s.inputs.Signer.KID }},
		{"role", func(s *subject) any { return s.inputs.Signer.Role }},
	}},
	{name: "skill", missing: func(s *subject) bool { return s.inputs.Skill == nil || s.inputs.Skill.Digest == "" }, fields: fields{
		{"destructive", func(s *subject) any { return s.inputs.Skill.Destroys() }},
		{"digest", func(s *subject) any { return s.inputs.Skill.Digest }},
		{"effect", func(s *subject) any { return s.inputs.Skill.Effect }},
		{"kind", func(s *subject) any { return text(s.inputs.Skill.Kind) }},
		{"name", func(s *subject) any { return s.inputs.Skill.Name }},
		{"open_world", func(s *subject) any { return cmp.Or(s.inputs.Skill.OpenWorld, unknown) }},
		{"trusted", func(s *subject) any { return s.inputs.Skill.Trusted }},
	}},
	{name: "task", missing: func(s *subject) bool { return s.inputs.Task == nil }, fields: fields{
		{"agent", func(s *subject) any { return text(s.inputs.Task.Agent) }},
		{"deadline", func(s *subject) any { return s.inputs.Task.Deadline }},
		{"plan_id", func(s *subject) any { return s.inputs.Task.PlanID }},
		{"revision", func(s *subject) any { return s.inputs.Task.Revision }},
		{"skills", func(s *subject) any { return s.skills() }},
		{"sources", func(s *subject) any { return sourcesInput(s.inputs.Task.Sources) }},
		{"step", func(s *subject) any { return s.inputs.Task.Step }},
		{"task_id", func(s *subject) any { return s.inputs.Task.TaskID }},
	}},
}

// member of the input: one value, or an object of fields.
type member struct {
	name    string
	value   func(*subject) any
	fields  fields
	missing func(*subject) bool // nil: each intent has it
}

// fields by name: a JSON value or []string; nil, if the intent does not have one.
type fields []struct {
	name  string
	value func(*subject) any
}

// present is a value that may be null and is there all the same.
type present struct{ value any }

// document is the whole input.
func (s *subject) document() map[string]any {
	doc := make(map[string]any, len(members))
	for i := range members {
		if v, there := members[i].of(s); there {
			doc[members[i].name] = v
		}
	}
	return doc
}

func (m *member) of(s *subject) (any, bool) {
	switch {
	case m.missing != nil && m.missing(s):
		return nil, false
	case m.value != nil:
		return m.value(s), true
	}
	object := make(map[string]any, len(m.fields))
	for _, f := range m.fields {
		v, there := given(f.value(s))
		if texts, are := v.([]string); are {
			v = list(texts)
		}
		if there {
			object[f.name] = v
		}
	}
	return object, true
}

func given(v any) (any, bool) {
	if p, is := v.(present); is {
		return p.value, true
	}
	return v, v != nil
}

// lookup is a path of a read set below the input of an intent.
type lookup struct {
	path   []string
	member *member
	field  func(*subject) any // nil: the whole member
	rest   []string           // of path below it
}

// lookups of paths. What no input has stays without a member.
func lookups(paths [][]string) []lookup {
	out := make([]lookup, len(paths))
	for i, path := range paths {
		out[i].path = path
		at, known := slices.BinarySearchFunc(members, path[0], func(m member, name string) int { return strings.Compare(m.name, name) })
		if !known {
			continue
		}
		m := &members[at]
		if len(path) == 1 || m.fields == nil {
			out[i].member, out[i].rest = m, path[1:]
			continue
		}
		for _, f := range m.fields {
			if f.name == path[1] {
				out[i].member, out[i].field, out[i].rest = m, f.value, path[2:]
			}
		}
	}
	return out
}

// value of a subject at the path.
func (l *lookup) value(s *subject) (v any, there bool) {
	switch {
	case l.member == nil || l.member.missing != nil && l.member.missing(s):
		return nil, false
	case l.field == nil:
		v, there = l.member.of(s)
	default:
		v, there = given(l.field(s))
	}
	if !there {
		return nil, false
	}
	return below(v, l.rest)
}

// below is the value at a path of a document.
func below(doc any, path []string) (any, bool) {
	for _, name := range path {
		object, _ := doc.(map[string]any)
		inner, there := object[name]
		if !there {
			return nil, false
		}
		doc = inner
	}
	return doc, true
}

// read is the part of the input that a policy can read: it cannot tell it from the whole. The lookups
// are those of paths that are sorted, from the name at depth on; nil: it has none of them.
func (s *subject) read(all []lookup, depth int) (*ast.Term, error) {
	var pairs [][2]*ast.Term
	for len(all) > 0 {
		name := all[0].path[depth]
		n := 1
		for n < len(all) && all[n].path[depth] == name {
			n++
		}
		term, err := s.member(all[:n], depth)
		if err != nil {
			return nil, err
		}
		if term != nil {
			pairs = append(pairs, [2]*ast.Term{ast.InternedTerm(name), term})
		}
		all = all[n:]
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	return ast.ObjectTerm(pairs...), nil
}

// member is the value of one name: that of its only path, or an object of those below it.
func (s *subject) member(all []lookup, depth int) (*ast.Term, error) {
	if len(all[0].path) > depth+1 {
		return s.read(all, depth+1)
	}
	v, there := all[0].value(s)
	if !there {
		return nil, nil
	}
	value, err := ast.InterfaceToValue(v)
	return ast.NewTerm(value), err
}

// skills of the task, by their ids.
func (s *subject) skills() []string {
	skills := s.inputs.Task.Skills
	if s.tool == "" {
		return skills
	}
	skills = slices.Clone(skills)
	for i, name := range skills {
		if name == s.tool {
			skills[i] = s.inputs.Skill.Name
		}
	}
	return skills
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func number(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

func yes(b bool) any {
	if !b {
		return nil
	}
	return true
}

func agentInput(a *intents.Agent) any {
	if a == nil {
		return nil
	}
	return map[string]any{"name": a.Name, "digest": a.Digest}
}

func labelsInput(labels map[string]string) any {
	if len(labels) == 0 {
		return nil
	}
	out := make(map[string]any, len(labels))
	for k, v := range labels {
		out[k] = v
	}
	return out
}

// unknown is the value of open_world where nobody has said it.
const unknown = "unknown"

func sourcesInput(sources []intents.Source) []any {
	out := make([]any, len(sources))
	for i, s := range sources {
		out[i] = map[string]any{"kind": s.Kind, "name": s.Name, "trusted": s.Trusted, "open_world": cmp.Or(s.OpenWorld, unknown)}
	}
	return out
}

func nodesInput(nodes []intents.NodeInput) []any {
	out := make([]any, len(nodes))
	for i, n := range nodes {
		node := map[string]any{"id": n.ID, "type": n.Type, "effect": n.Effect}
		if n.Fn != "" {
			node["fn"] = n.Fn
		}
		out[i] = node
	}
	return out
}

func approvalsInput(approvals []intents.Approval) []any {
	out := make([]any, len(approvals))
	for i, a := range approvals {
		out[i] = map[string]any{"user_id": a.UserID, "decision": "approve", "at": a.At}
	}
	return out
}

// plainJSON decodes a value's JSON. Numbers retain their spelling.
func plainJSON(v any) (out any, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return schemas.Decode(raw)
}

// decodeStrict decodes a value's JSON into another value, and refuses members that the other
// does not have.
func decodeStrict(v, into any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return intents.UnmarshalStrict(raw, into)
}

func list(items []string) []any {
	out := make([]any, len(items))
	for i, s := range items {
		out[i] = s
	}
	return out
}
