package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// Fault is one thing that is wrong with a definition or a registry.
type Fault struct {
	File    string // empty: a text without one
	Agent   string // the agent at fault, where no file is
	Line    int    // 0: not known
	Pointer string // JSON Pointer into the definition
	Reason  string // what is wrong, or what to do
}

func (f Fault) Error() string {
	var b strings.Builder
	switch {
	case f.File != "" && f.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", f.File, f.Line)
	case f.File != "":
		b.WriteString(f.File + ": ")
	case f.Agent != "":
		b.WriteString("agent " + f.Agent + ": ")
	case f.Line > 0:
		fmt.Fprintf(&b, "line %d: ", f.Line)
	}
	if f.Pointer != "" {
		b.WriteString(f.Pointer + ": ")
	}
	return b.String() + f.Reason
}

// Faults are all that is wrong, one a line.
type Faults []Fault

func (f Faults) Error() string {
	var lines []string
	for _, fault := range f {
		lines = append(lines, fault.Error())
	}
	return strings.Join(lines, "\n")
}

// MaxFile is how long one file of a registry may be, in bytes.
const MaxFile = 1 << 20

// Parse reads a definition in YAML or JSON. The error is Faults.
func Parse(text []byte) (*Agent, error) {
	d, faults := define("", text)
	if len(faults) > 0 {
		return nil, faults
	}
	return d.Agent, nil
}

// New checks an agent written as a literal, and fills in what it leaves out. The error
// is Faults, but for a property that is no JSON.
func New(a Agent) (*Agent, error) {
	text, err := compact(a)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Definition is an agent as its file says it.
type Definition struct {
	*Agent
	File   string
	Text   []byte
	Digest string // of Text

	lines map[string]int // by JSON Pointer
}

// define reads one definition.
func define(file string, text []byte) (*Definition, Faults) {
	d := &Definition{File: file, Text: text, Digest: intents.Digest(text)}
	faults := func() Faults {
		doc, lines, err := document(text)
		d.lines = lines
		if err != nil {
			return Faults{*err}
		}
		if found := violations(doc); len(found) > 0 {
			return found
		}
		a, err := decode(doc)
		if err != nil {
			return Faults{*err}
		}
		d.Agent = a
		return a.check()
	}()
	for i := range faults {
		faults[i].File = file
		if faults[i].Line == 0 {
			faults[i].Line = d.line(faults[i].Pointer)
		}
	}
	return d, faults
}

// line of a pointer, or of the nearest thing around it; 0: not known.
func (d *Definition) line(pointer string) int {
	for {
		if n, ok := d.lines[pointer]; ok || pointer == "" {
			return n
		}
		pointer = pointer[:max(strings.LastIndexByte(pointer, '/'), 0)]
	}
}

// decode reads a definition that its schema has let pass.
func decode(doc []byte) (*Agent, *Fault) {
	var in struct {
		Agent
		AgentID string `json:"agent_id"`
	}
	if err := json.Unmarshal(doc, &in); err != nil {
		return nil, &Fault{Reason: err.Error()}
	}
	a := &in.Agent
	if a.Name == "" {
		a.Name = in.AgentID
	}
	if a.Type == "object" {
		a.Type = ""
	}
	a.Limits = a.Limits.withDefaults()
	if slices.Contains(exact, a.Name) && (a.Temperature == nil || *a.Temperature > maxExact) {
		highest := maxExact
		a.Temperature = &highest
	}
	return a, nil
}

// violations of the schema, with what to do about an unknown member.
func violations(doc []byte) Faults {
	schema, err := schemas.Lookup(schemas.Base + "agent.json")
	if err != nil {
		return Faults{{Reason: err.Error()}}
	}
	var found Faults
	for _, v := range schema.ValidateBytes(doc) {
		reason := v.Reason
		if reason == schemas.UnknownMember {
			reason = unknown(v.Pointer[strings.LastIndexByte(v.Pointer, '/')+1:], schema.Names(v.Pointer))
		}
		found = append(found, Fault{Pointer: v.Pointer, Reason: reason})
	}
	return found
}

func unknown(name string, known []string) string {
	near := schemas.Nearest(name, known)
	switch {
	case len(known) == 0:
		return "is no name that may stand here"
	case near != "":
		return "unknown member, did you mean " + near + "?"
	}
	return "unknown member, known are " + strings.Join(known, ", ")
}

// check finds what the schema cannot say.
func (a *Agent) check() Faults {
	var found Faults
	fault := func(pointer, format string, args ...any) {
		found = append(found, Fault{Pointer: pointer, Reason: fmt.Sprintf(format, args...)})
	}
	compiles := func(pointer string, schema []byte) {
		if _, err := schemas.Compile(schema); err != nil {
			fault(pointer, "is no JSON Schema: %s", oneLine(err.Error()))
		}
	}
	for _, p := range a.Properties {
		compiles("/properties/"+p.Name, p.Schema)
	}
	if schema, err := a.Properties.schema(a.Required); err != nil {
		fault("/properties", "%v", err)
	} else if len(found) == 0 {
		compiles("/properties", schema)
	}
	for i, name := range a.Required {
		if !slices.Contains(a.Properties.names(), name) {
			fault(fmt.Sprintf("/required/%d", i), "is none of the properties")
		}
	}
	for i, e := range a.Enrichers {
		compiles(fmt.Sprintf("/enrichers/%d/schema", i), e.Schema)
	}
	seen := map[string]bool{}
	for i, t := range a.Tools {
		at := fmt.Sprintf("/tools/%d", i)
		switch {
		case t.Server == "" && local[t.Name] == nil:
			fault(at+"/name", "is no tool of this system (%s): say which server has it", strings.Join(localNames(), ", "))
		case t.Server == AllServers && t.Name != "":
			fault(at+"/name", "goes with one server: leave it out, or name the server")
		case len(t.ID()) > maxSkillID:
			fault(at, "server and name are longer than %d characters together", maxSkillID)
		case seen[t.ID()]:
			fault(at, "stands there twice: leave one of them out")
		}
		seen[t.ID()] = true
		if t.Status != "" && !has(a.StatusEvents, t.Status) {
			fault(at+"/status", "is none of status_events: add it there")
		}
		if t.Approval != nil && t.Approval.When != nil {
			compiles(at+"/approval/when", t.Approval.When)
		}
	}
	if len(a.SubAgents) > 0 && a.asksAny() {
		fault("/sub_agents", "do not go with the tool %s, which asks any agent: leave one of them out", AskAgent)
	}
	if a.Routing != nil && a.Default && a.Threshold != 0 {
		fault("/confidence_threshold", "must be 0: the default agent takes what no other is for")
	}
	return found
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// maxSkillID is how long the name of a skill in an order may be.
const maxSkillID = 128

// document gives the JSON of a text in YAML or JSON, with the members as they are
// ordered there, and for YAML the line of each value.
func document(text []byte) ([]byte, map[string]int, *Fault) {
	if len(text) > MaxFile {
		return nil, nil, &Fault{Reason: "is larger than 1 MB"}
	}
	if json.Valid(text) {
		return strictJSON(text)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var node yaml.Node
	if err := dec.Decode(&node); errors.Is(err, io.EOF) {
		return nil, nil, &Fault{Reason: "is empty"}
	} else if err != nil {
		return nil, nil, &Fault{Reason: err.Error()}
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, nil, &Fault{Reason: "has more than one document: write one agent a file"}
	}
	r := reader{lines: map[string]int{}}
	fault := r.value(node.Content[0], "", 0)
	return r.b.Bytes(), r.lines, fault
}

// strictJSON refuses JSON that two readers might read differently.
func strictJSON(text []byte) ([]byte, map[string]int, *Fault) {
	var refused *intents.Refusal
	if _, err := intents.Canonical(text); errors.As(err, &refused) {
		return nil, nil, &Fault{Pointer: refused.Pointer, Reason: refused.Reason}
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return nil, nil, &Fault{Reason: err.Error()}
	}
	return b.Bytes(), nil, nil
}

// reader writes YAML as JSON. Anchors, tags and members that stand twice are refused:
// each has more than one reading.
type reader struct {
	b     bytes.Buffer
	lines map[string]int
}

const maxDepth = 32

func (r *reader) value(n *yaml.Node, pointer string, depth int) *Fault {
	r.lines[pointer] = n.Line
	if depth > maxDepth {
		return &Fault{Line: n.Line, Pointer: pointer, Reason: "is nested too deeply"}
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.object(n, pointer, depth)
	case yaml.SequenceNode:
		r.b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				r.b.WriteByte(',')
			}
			if fault := r.value(item, pointer+"/"+strconv.Itoa(i), depth+1); fault != nil {
				return fault
			}
		}
		r.b.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		return r.scalar(n, pointer)
	}
	return &Fault{Line: n.Line, Pointer: pointer, Reason: "is an alias: write the value out"}
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func (r *reader) object(n *yaml.Node, pointer string, depth int) *Fault {
	seen := map[string]bool{}
	r.b.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := pointer + "/" + escapePointer.Replace(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			return &Fault{Line: key.Line, Pointer: pointer, Reason: "has a member whose name is no text"}
		case seen[key.Value]:
			return &Fault{Line: key.Line, Pointer: at, Reason: "stands there twice"}
		}
		seen[key.Value] = true
		name, err := compact(key.Value)
		if err != nil {
			return &Fault{Line: key.Line, Pointer: at, Reason: err.Error()}
		}
		if i > 0 {
			r.b.WriteByte(',')
		}
		r.b.Write(append(name, ':'))
		if fault := r.value(value, at, depth+1); fault != nil {
			return fault
		}
		r.lines[at] = key.Line
	}
	r.b.WriteByte('}')
	return nil
}

func (r *reader) scalar(n *yaml.Node, pointer string) *Fault {
	var v any
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		v = n.Value
	case "!!null", "!!bool", "!!int", "!!float":
		if err := n.Decode(&v); err != nil {
			return &Fault{Line: n.Line, Pointer: pointer, Reason: err.Error()}
		}
	default:
		return &Fault{Line: n.Line, Pointer: pointer, Reason: "has a tag: leave it out"}
	}
	text, err := compact(v)
	if err != nil {
		return &Fault{Line: n.Line, Pointer: pointer, Reason: "is no number of JSON"}
	}
	r.b.Write(text)
	return nil
}
