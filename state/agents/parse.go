package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/document"
)

// Parse reads a definition in YAML or JSON. The error is Faults.
func Parse(text []byte) (*Agent, error) {
	d, faults := define("", text)
	if len(faults) > 0 {
		return nil, faults
	}
	return d.Agent, nil
}

// New checks an agent written as a literal, and fills in defaults. The error is Faults, except
// for a property that is no JSON.
func New(a Agent) (*Agent, error) {
	text, err := intents.MarshalPlain(a)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Definition is an agent with its file.
type Definition struct {
	*Agent
	File   string
	Text   []byte
	Digest string // of Text

	lines document.Lines
}

// define reads one definition.
func define(file string, text []byte) (*Definition, Faults) {
	d := &Definition{File: file, Text: text, Digest: intents.Digest(text)}
	return d, document.Define(file, text, "agent.json", func(doc []byte, lines document.Lines) Faults {
		d.lines = lines
		a, err := decode(doc)
		if err != nil {
			return Faults{*err}
		}
		d.Agent = a
		return a.check()
	})
}

// line of a pointer; 0 if unknown.
func (d *Definition) line(pointer string) int { return d.lines.Line(pointer) }

// decode decodes a definition that is valid against its schema.
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

// check finds faults that the schema cannot express.
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
		if _, err := intents.Canonical(e.Schema); err != nil { // part of tickets
			fault(fmt.Sprintf("/enrichers/%d/schema", i), "is no I-JSON: %v", err)
		}
	}
	seen := map[string]bool{}
	for i, t := range a.Tools {
		at := fmt.Sprintf("/tools/%d", i)
		switch {
		case t.Server == "" && ownedBy[t.Name] != a.Name && !slices.Contains(localTools(), t.Name):
			fault(at+"/name", "is no tool of this system (%s): say which server has it", strings.Join(localTools(), ", "))
		case t.Server != "" && t.Name == AskAgent:
			fault(at+"/server", "%s is a tool of this system: leave the server out", AskAgent)
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
		fault("/sub_agents", notBoth)
	}
	if a.Routing != nil && a.Default && a.Threshold != 0 {
		fault("/confidence_threshold", notZero)
	}
	return found
}

func has[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// Reasons that also apply to the set of a tenant.
const (
	notBoth = "do not go with the tool " + AskAgent + ", which asks any agent: leave one of them out"
	notZero = "must be 0: the default agent takes what no other is for"
)

// maxSkillID is the maximum length of the name of a skill in an intent.
const maxSkillID = 128
