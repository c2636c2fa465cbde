// Package document reads the files of a registry: YAML or JSON that has only one reading. It
// reports faults by file, line and JSON Pointer.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// MaxFile is the maximum length of one file of a registry, in bytes.
const MaxFile = 1 << 20

// Lines of a document, by JSON Pointer.
type Lines map[string]int

// Line of a pointer, or of its nearest ancestor; 0 if unknown.
func (l Lines) Line(pointer string) int {
	for {
		if n, ok := l[pointer]; ok || pointer == "" {
			return n
		}
		pointer = pointer[:max(strings.LastIndexByte(pointer, '/'), 0)]
	}
}

// Read converts a text in YAML or JSON to JSON, with the members in their written order, and
// returns for YAML the line of each value.
func Read(text []byte) ([]byte, Lines, *Fault) {
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
		return nil, nil, &Fault{Reason: "has more than one document: write one a file"}
	}
	r := reader{lines: Lines{}}
	fault := r.value(node.Content[0], "", 0)
	return r.b.Bytes(), r.lines, fault
}

// strictJSON refuses JSON that two readers might read differently.
func strictJSON(text []byte) ([]byte, Lines, *Fault) {
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

// reader converts YAML to JSON. Anchors, tags and duplicate members are refused: each has more
// than one reading.
type reader struct {
	b     bytes.Buffer
	lines Lines
}

const maxDepth = 32

func (r *reader) value(n *yaml.Node, pointer string, depth int) *Fault {
	r.lines[pointer] = n.Line
	if depth > maxDepth {
		return &Fault{Line: n.Line, Pointer: pointer, Reason: "is nested too deeply"}
	}
	switch n.Kind { //nolint:exhaustive // others are refused
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

func (r *reader) object(n *yaml.Node, pointer string, depth int) *Fault {
	seen := map[string]bool{}
	r.b.WriteByte('{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := pointer + "/" + schemas.Escape(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge":
			return &Fault{Line: key.Line, Pointer: pointer, Reason: "has a member whose name is no text"}
		case seen[key.Value]:
			return &Fault{Line: key.Line, Pointer: at, Reason: "stands there twice"}
		}
		seen[key.Value] = true
		name, err := intents.MarshalPlain(key.Value)
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
	text, err := intents.MarshalPlain(v)
	if err != nil {
		return &Fault{Line: n.Line, Pointer: pointer, Reason: "is no number of JSON"}
	}
	r.b.Write(text)
	return nil
}
