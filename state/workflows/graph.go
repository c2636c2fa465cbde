// Package workflows reads, checks, patches and evaluates graphs of nodes with conditions. It is
// pure: it knows neither time nor any plan, and equal values give equal results.
//
// A [Definition] is a file workflows/*.yaml of a registry's revision. Its [Graph] is part of the
// revision's scopes, and of each run of it. The [Values] of a run are the results of its nodes
// so far; [Graph.Next] derives what comes next for the others.
package workflows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"

	"aob.dev/writ/schemas"
)

// Graph is what a run needs of its definition. Do not modify: a patch makes another one.
type Graph struct {
	WorkflowID string          `json:"workflow_id"`
	Version    string          `json:"version"`
	Digest     string          `json:"digest"` // of the definition's file
	CEL        int             `json:"cel"`    // Profile of its conditions
	MaxDays    int             `json:"max_days"`
	Inputs     json.RawMessage `json:"inputs,omitempty"` // JSON Schema of a run's inputs; absent: none
	Nodes      []Node          `json:"nodes"`
	Edges      []Edge          `json:"edges"`

	once sync.Once
	x    *index
}

// Types of nodes.
const (
	Function = "function"
	Python   = "python"
	Agent    = "agent"
	Approval = "approval"
)

// Node is one intent of a run, or one agent's work.
type Node struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Fn         string          `json:"fn,omitempty"`     // skill, script, agent
	Inputs     json.RawMessage `json:"inputs,omitempty"` // object; its texts may contain templates
	From       json.RawMessage `json:"from,omitempty"`   // instead of Inputs: a reference, or for python several by name
	Retry      *Retry          `json:"retry,omitempty"`
	TimeoutSec int             `json:"timeout_sec,omitempty"`

	// Outputs are the pointers that conditions and templates read: an outcome retains these.
	Outputs []string `json:"outputs,omitempty"`
	// CutOff by a patch: it had incoming edges and no longer has any.
	CutOff bool `json:"cut_off,omitempty"`
}

// Retry is how often a failed node is tried again, and the delay.
type Retry struct {
	Max        int `json:"max"`
	BackoffSec int `json:"backoff_sec,omitempty"`
}

// Edge leads from a node to one that waits for it.
type Edge struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Condition string `json:"condition,omitempty"`
}

// Bounds of a graph.
const (
	MaxNodes = 200
	maxEdges = 1000
)

// index of a graph: derived data that is not recorded.
type index struct {
	byID       map[string]int
	into       map[string][]int // edges by their target node
	conditions map[string]*condition
	schema     *schemas.Schema // of the inputs; nil: none
	types      map[string]*cel.Type
}

// indexed computes the index when it is first needed.
func (g *Graph) indexed() *index {
	g.once.Do(func() {
		if g.x == nil {
			g.x = g.newIndex(nil)
		}
	})
	return g.x
}

// newIndex of the graph; compiled are conditions of a graph with the same inputs.
func (g *Graph) newIndex(compiled map[string]*condition) *index {
	x := &index{map[string]int{}, map[string][]int{}, map[string]*condition{}, nil, inputTypes(g.Inputs)}
	for i, n := range g.Nodes {
		x.byID[n.ID] = i
	}
	for i, e := range g.Edges {
		x.into[e.To] = append(x.into[e.To], i)
		if e.Condition == "" || x.conditions[e.Condition] != nil {
			continue
		}
		if c := compiled[e.Condition]; c != nil {
			x.conditions[e.Condition] = c
		} else if c, wrong := compile(e.Condition, x.typeOf); wrong == "" {
			x.conditions[e.Condition] = c
		}
	}
	if g.Inputs != nil {
		x.schema, _ = schemas.Compile(g.Inputs)
	}
	return x
}

// inputTypes are the types of inputs that their schema declares directly.
func inputTypes(schema json.RawMessage) map[string]*cel.Type {
	var s struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
	}
	out := map[string]*cel.Type{}
	if schema == nil || json.Unmarshal(schema, &s) != nil {
		return out
	}
	for name, p := range s.Properties {
		switch p.Type {
		case "string":
			out[name] = cel.StringType
		case "boolean":
			out[name] = cel.BoolType
		case "integer":
			out[name] = cel.IntType
		default:
			out[name] = cel.DynType
		}
	}
	return out
}

// typeOf a value in a condition.
func (x *index) typeOf(p path) *cel.Type {
	switch {
	case p.root == rootRun, p.root == partIntent:
		return cel.StringType
	case p.root == partOutputs && len(p.tokens) == 1 && p.tokens[0] == success:
		return cel.BoolType
	case p.root == rootInputs && len(p.tokens) == 1:
		if name, ok := p.tokens[0].(string); ok && x.types[name] != nil {
			return x.types[name]
		}
	}
	return cel.DynType
}

// Node of an id; nil if there is none.
func (g *Graph) Node(id string) *Node {
	i, ok := g.indexed().byID[id]
	if !ok {
		return nil
	}
	return &g.Nodes[i]
}

// Tolerates reports that a node may fail without failing the run: an edge with a condition
// leaves it.
func (g *Graph) Tolerates(node string) bool {
	return slices.ContainsFunc(g.Edges, func(e Edge) bool { return e.From == node && e.Condition != "" })
}

// CheckInputs returns the violations of a run's inputs.
func (g *Graph) CheckInputs(inputs json.RawMessage) []schemas.Violation {
	if inputs == nil {
		inputs = json.RawMessage(`{}`)
	}
	if s := g.indexed().schema; s != nil {
		return s.ValidateBytes(inputs)
	}
	if object, ok := decode(inputs).(map[string]any); g.Inputs == nil && ok && len(object) == 0 {
		return nil
	}
	return []schemas.Violation{{Reason: "the workflow takes no inputs"}}
}

// maxOutputs is the maximum length of a node's retained outputs, in bytes.
const maxOutputs = 4 << 10

// Cut is what an outcome retains of a node's outputs: what the graph reads, in the order of its
// pointers, as far as it fits, and whether the node succeeded. Hidden values are left out. done:
// the node's intent is done.
func (g *Graph) Cut(node string, outputs json.RawMessage, done bool) json.RawMessage {
	all, _ := decode(outputs).(map[string]any)
	kept := map[string]any{success: done}
	if said, ok := all[success].(bool); ok {
		kept[success] = done && said
	}
	text, _ := canonical(kept)
	n := g.Node(node)
	if n == nil || !done {
		return text
	}
	for _, pointer := range n.Outputs {
		tokens := tokensOf(pointer)
		v, ok := along(all, tokens)
		if !ok || pointer == "/"+success {
			continue
		}
		more, _ := decode(text).(map[string]any)
		put(more, tokens, eachLeaf(v, handedOn))
		if longer, err := canonical(more); err == nil && len(longer) <= maxOutputs {
			text = longer
		}
	}
	return text
}

func tokensOf(pointer string) (tokens []any) {
	for _, t := range strings.Split(pointer, "/")[1:] {
		tokens = append(tokens, schemas.Unescape(t))
	}
	return tokens
}

// put inserts a value into an object, with the objects on its path.
func put(object map[string]any, tokens []any, v any) {
	for _, t := range tokens[:len(tokens)-1] {
		next, ok := object[fmt.Sprint(t)].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[fmt.Sprint(t)] = next
		}
		object = next
	}
	object[fmt.Sprint(tokens[len(tokens)-1])] = v
}
