package model

import (
	"encoding/json"
	"strings"
)

// sampleNode infers the shape of data from its first lines, where no schema
// was declared. The lines may be cut anywhere: what was read before the cut counts.
func sampleNode(lines []string, format string) *node {
	if format == "jsonl" {
		items := &node{required: map[string]bool{}, open: true}
		for _, l := range lines {
			items.absorb(observe(l))
		}
		return &node{types: []string{"array"}, items: items, required: map[string]bool{}, open: true}
	}
	return observe(strings.Join(lines, "\n"))
}

// observe reads as much of one JSON document as there is.
func observe(text string) *node {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	n, _ := observeValue(d, 0)
	return n
}

// observeValue reads one value; ok is false when the text ended inside it.
func observeValue(d *json.Decoder, depth int) (n *node, ok bool) {
	n = &node{required: map[string]bool{}, open: true}
	t, err := d.Token()
	if err != nil || depth > 64 {
		return n, false
	}
	switch v := t.(type) {
	case nil:
		n.nullable = true
	case bool:
		n.types = []string{"boolean"}
	case string:
		n.types = []string{"string"}
	case json.Number:
		n.types = []string{"number"}
		if !strings.ContainsAny(v.String(), ".eE") {
			n.types = []string{"integer"}
		}
	case json.Delim:
		return n, observeInside(d, n, v, depth)
	}
	return n, true
}

func observeInside(d *json.Decoder, n *node, open json.Delim, depth int) bool {
	n.types = []string{"object"}
	if open == '[' {
		n.types, n.items = []string{"array"}, &node{required: map[string]bool{}, open: true}
	}
	for d.More() {
		name := ""
		if open == '{' {
			t, err := d.Token()
			s, isString := t.(string)
			if err != nil || !isString {
				return false
			}
			name = s
		}
		v, ok := observeValue(d, depth+1)
		if open == '[' {
			n.items.absorb(v)
		} else if ok || len(v.types) > 0 {
			n.add(name, v)
		}
		if !ok {
			return false
		}
	}
	_, err := d.Token()
	return err == nil
}

func (n *node) add(name string, v *node) {
	if have := n.prop(name); have != nil {
		have.absorb(v)
		return
	}
	n.props = append(n.props, prop{name, v})
}

// absorb widens n so that it also covers m: an integer beside a fraction is a number.
func (n *node) absorb(m *node) {
	n.nullable = n.nullable || m.nullable
	for _, t := range m.types {
		switch {
		case t == "integer" && n.is("number"):
		case t == "number" && n.is("integer"):
			for i := range n.types {
				if n.types[i] == "integer" {
					n.types[i] = "number"
				}
			}
		case !n.is(t):
			n.types = append(n.types, t)
		}
	}
	for _, p := range m.props {
		n.add(p.name, p.node)
	}
	if m.items != nil {
		if n.items == nil {
			n.items = &node{required: map[string]bool{}, open: true}
		}
		n.items.absorb(m.items)
	}
}

// fits reports whether a value is what n says, in the structure that shapes can
// express: types, required members, no unknown members where there may be none.
func fits(n *node, raw json.RawMessage) bool {
	if isNull(raw) {
		return n.nullable || len(n.types) == 0
	}
	switch {
	case len(n.types) == 0:
		return json.Valid(raw)
	case n.is("array"):
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return false
		}
		for _, v := range list {
			if n.items != nil && !fits(n.items, v) {
				return false
			}
		}
		return true
	case n.is("object"):
		return fitsObject(n, raw)
	}
	seen := observe(string(raw))
	return seen.is(n.types...) || seen.is("integer") && n.is("number")
}

func fitsObject(n *node, raw json.RawMessage) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	for name := range n.required {
		if _, ok := m[name]; !ok {
			return false
		}
	}
	for name, v := range m {
		if p := n.prop(name); p != nil && !fits(p, v) || p == nil && !n.open {
			return false
		}
	}
	return true
}
