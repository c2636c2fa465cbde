package model

import (
	"bytes"
	"encoding/json"
	"strings"
)

// node is what is known about a piece of JSON: what its schema declares, or
// what a sample of it shows.
type node struct {
	types    []string // without null
	nullable bool
	title    string
	desc     string
	format   string
	values   []string // texts that the schema enumerates or gives as examples
	closed   bool     // values are all there are
	fixed    bool     // a constant: says nothing about a record
	fallback json.RawMessage
	props    []prop
	required map[string]bool
	open     bool // other members than props may occur
	items    *node
}

type prop struct {
	name string
	node *node
}

func (n *node) is(types ...string) bool {
	for _, t := range types {
		for _, have := range n.types {
			if t == have {
				return true
			}
		}
	}
	return false
}

func (n *node) prop(name string) *node {
	for _, p := range n.props {
		if p.name == name {
			return p.node
		}
	}
	return nil
}

// schemaDepth and schemaNodes bound how much of a schema is read: a reference
// may lead back to its own ancestor.
const (
	schemaDepth = 12
	schemaNodes = 4000
)

// readSchema reads what it understands of a JSON Schema. It never fails: what
// it does not understand it leaves open.
func readSchema(raw json.RawMessage) *node {
	r := &schemaReader{root: raw, left: schemaNodes}
	return r.read(raw, 0)
}

type schemaReader struct {
	root json.RawMessage
	left int
}

type keywords struct {
	Type                 json.RawMessage   `json:"type"`
	Title                string            `json:"title"`
	Description          string            `json:"description"`
	Format               string            `json:"format"`
	Enum                 []json.RawMessage `json:"enum"`
	Examples             []json.RawMessage `json:"examples"`
	Const                json.RawMessage   `json:"const"`
	Default              json.RawMessage   `json:"default"`
	Properties           json.RawMessage   `json:"properties"`
	Required             []string          `json:"required"`
	AdditionalProperties json.RawMessage   `json:"additionalProperties"`
	Items                json.RawMessage   `json:"items"`
	Ref                  string            `json:"$ref"`
	AllOf                []json.RawMessage `json:"allOf"`
	AnyOf                []json.RawMessage `json:"anyOf"`
	OneOf                []json.RawMessage `json:"oneOf"`
}

func (r *schemaReader) read(raw json.RawMessage, depth int) *node {
	n := &node{required: map[string]bool{}, open: true}
	r.left--
	var k keywords
	if depth > schemaDepth || r.left < 0 || json.Unmarshal(raw, &k) != nil {
		return n
	}
	if target, ok := r.resolve(k.Ref); ok {
		n = r.read(target, depth+1)
	}
	for _, sub := range k.AllOf {
		n.merge(r.read(sub, depth+1))
	}
	for _, sub := range append(k.AnyOf, k.OneOf...) {
		r.alternative(n, sub, depth)
	}
	n.describe(k)
	for _, name := range keysOf(k.Properties) {
		n.props = append(n.props, prop{name.key, r.read(name.value, depth+1)})
	}
	for _, name := range k.Required {
		n.required[name] = true
	}
	if len(k.Items) > 0 {
		n.items = r.read(k.Items, depth+1)
	}
	n.settle(k)
	return n
}

// alternative takes the first alternative that is not null for the whole, and
// notes that null is allowed where it is one of them.
func (r *schemaReader) alternative(n *node, raw json.RawMessage, depth int) {
	sub := r.read(raw, depth+1)
	switch {
	case len(sub.types) == 0 && sub.nullable:
		n.nullable = true
	case len(n.types) == 0:
		n.merge(sub)
	case !n.is(sub.types...):
		n.types = append(n.types, sub.types...) // a mixture: no type can be promised
	}
}

func (n *node) merge(m *node) {
	n.types = append(n.types, m.types...)
	n.nullable = n.nullable || m.nullable
	n.title, n.desc, n.format = either(n.title, m.title), either(n.desc, m.desc), either(n.format, m.format)
	n.values = append(n.values, m.values...)
	n.props = append(n.props, m.props...)
	for name := range m.required {
		n.required[name] = true
	}
	if n.items == nil {
		n.items = m.items
	}
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (n *node) describe(k keywords) {
	n.title, n.desc, n.format = either(k.Title, n.title), either(k.Description, n.desc), either(k.Format, n.format)
	if len(k.Default) > 0 && !isNull(k.Default) {
		n.fallback = k.Default
	}
	var one string
	var many []string
	if json.Unmarshal(k.Type, &one) == nil && one != "" {
		many = []string{one}
	} else if json.Unmarshal(k.Type, &many) != nil {
		many = nil
	}
	for _, t := range many {
		if t == "null" {
			n.nullable = true
		} else if !n.is(t) {
			n.types = append(n.types, t)
		}
	}
	for _, v := range append(k.Enum, k.Examples...) {
		var s string
		if isNull(v) {
			n.nullable = n.nullable || len(k.Enum) > 0
		} else if json.Unmarshal(v, &s) == nil {
			n.values = append(n.values, s)
		}
	}
	n.closed = len(k.Enum) > 0 && len(n.values) > 0
	n.fixed = len(k.Const) > 0 || len(k.Enum) == 1
}

// settle infers the type that a schema leaves unsaid.
func (n *node) settle(k keywords) {
	n.open = string(bytes.TrimSpace(k.AdditionalProperties)) != "false"
	if len(n.types) > 0 {
		return
	}
	switch {
	case len(n.props) > 0:
		n.types = []string{"object"}
	case n.items != nil:
		n.types = []string{"array"}
	case n.closed:
		n.types = []string{"string"}
	}
}

// resolve finds the target of a local reference such as "#/$defs/outlet".
func (r *schemaReader) resolve(ref string) (json.RawMessage, bool) {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return r.root, ref == "#"
	}
	at := r.root
	for step := range strings.SplitSeq(path, "/") {
		var m map[string]json.RawMessage
		if json.Unmarshal(at, &m) != nil {
			return nil, false
		}
		if at, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !ok {
			return nil, false
		}
	}
	return at, true
}

type member struct {
	key   string
	value json.RawMessage
}

// keysOf returns the members of an object in the order of the document, or
// nothing for anything else.
func keysOf(raw json.RawMessage) []member {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var out []member
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		var v json.RawMessage
		if err != nil || !ok || d.Decode(&v) != nil {
			return out
		}
		out = append(out, member{key, v})
	}
	return out
}

func isNull(raw json.RawMessage) bool {
	s := string(bytes.TrimSpace(raw))
	return s == "" || s == "null"
}
