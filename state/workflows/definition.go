package workflows

import (
	"cmp"
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/document"
)

// Definition is a workflow with its file.
type Definition struct {
	*Graph
	Description string
	File        string
	Text        []byte

	lines document.Lines
}

// Parse reads a definition in YAML or JSON, and finds its faults.
func Parse(file string, text []byte) (*Definition, Faults) {
	d := &Definition{File: file, Text: text}
	return d, document.Define(file, text, "workflow.json", func(doc []byte, lines document.Lines) Faults {
		d.lines = lines
		in := struct {
			Graph
			Description string `json:"description"`
		}{}
		if err := json.Unmarshal(doc, &in); err != nil {
			return Faults{{Reason: err.Error()}}
		}
		d.Graph, d.Description = &Graph{
			WorkflowID: in.WorkflowID, Version: in.Version, Digest: intents.Digest(text), CEL: Profile,
			MaxDays: cmp.Or(in.MaxDays, 1), Inputs: in.Inputs, Nodes: in.Nodes, Edges: in.Edges,
		}, in.Description
		if d.Edges == nil {
			d.Edges = []Edge{}
		}
		return d.check()
	})
}

// Line of a pointer into the file; 0 if unknown.
func (d *Definition) Line(pointer string) int { return d.lines.Line(pointer) }

// check finds faults that the schema cannot express.
func (d *Definition) check() Faults {
	c := &checker{graph: d.Graph, node: numbered("/nodes"), edge: numbered("/edges")}
	if d.Inputs != nil {
		c.inputs()
	}
	for i := range d.Nodes {
		c.plain(i)
	}
	if len(c.faults) > 0 {
		return c.faults
	}
	c.all()
	return c.faults
}

func numbered(list string) func(i int) string {
	return func(i int) string { return fmt.Sprintf("%s/%d", list, i) }
}

// inputs checks the schema of the inputs, and makes it canonical: it is part of a record.
func (c *checker) inputs() {
	g := c.graph
	var s struct {
		Type any `json:"type"`
	}
	text, err := intents.Canonical(g.Inputs)
	if err != nil {
		c.fault("/inputs", "is no I-JSON: %v", err)
		return
	}
	g.Inputs = text
	if _, err := schemas.Compile(text); err != nil {
		c.fault("/inputs", "is no JSON Schema: %s", oneLine(err.Error()))
	} else if err := json.Unmarshal(text, &s); err != nil || s.Type != "object" {
		c.fault("/inputs/type", "must be object: each input is one of its properties")
	}
}
