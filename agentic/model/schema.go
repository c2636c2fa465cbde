package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// plainSchema rewrites a schema with the few keywords that every server accepts at every depth.
// What is lost is said in descriptions. It is for the model alone: the caller checks arguments by
// the schema itself.
func plainSchema(schema json.RawMessage) map[string]any {
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	var root map[string]any
	if d.Decode(&root) != nil {
		return map[string]any{"type": "object"}
	}
	p := plainer{root: root, left: maxPlainNodes}
	plain := p.plain(root, 0)
	plain["type"] = "object"
	delete(plain, "anyOf")
	return plain
}

// Bounds of recursive schemas.
const (
	maxPlainDepth = 10
	maxPlainNodes = 2000
)

type plainer struct {
	root map[string]any
	left int // nodes that may still be visited
}

func (p *plainer) plain(s map[string]any, depth int) map[string]any {
	if p.left--; depth > maxPlainDepth || p.left < 0 {
		return map[string]any{"type": "object"}
	}
	s = p.resolved(s)
	out := map[string]any{}
	for _, name := range []string{"description", "minimum", "maximum", "minItems", "maxItems"} {
		if v, there := s[name]; there {
			out[name] = v
		}
	}
	if !p.choose(s, out, depth) {
		return out
	}
	switch out["type"] {
	case "object":
		p.object(s, out, depth)
	case "array":
		items, _ := s["items"].(map[string]any)
		if items == nil {
			items = map[string]any{"type": "string"}
		}
		out["items"] = p.plain(items, depth+1)
	case nil:
		out["type"] = "string"
	}
	values, _ := s["enum"].([]any)
	if c, there := s["const"]; there {
		values = []any{c}
	}
	if out["type"] == "string" && len(values) > 0 && !slices.ContainsFunc(values, func(v any) bool { s, is := v.(string); return !is || s == "" }) {
		out["enum"] = values
	} else if len(values) > 0 {
		note(out, "one of", values)
	}
	for _, lost := range []string{"pattern", "format", "minLength", "maxLength", "multipleOf", "exclusiveMinimum", "exclusiveMaximum", "default"} {
		if v, there := s[lost]; there {
			note(out, lost, v)
		}
	}
	return out
}

// choose sets the type. Alternatives are left as anyOf; false: there is nothing else to say.
func (p *plainer) choose(s, out map[string]any, depth int) bool {
	types, _ := s["type"].([]any)
	if t, is := s["type"].(string); is {
		types = []any{t}
	}
	alternatives, _ := s["anyOf"].([]any)
	if more, _ := s["oneOf"].([]any); alternatives == nil {
		alternatives = more
	}
	if s["properties"] != nil && len(types) == 0 {
		types, alternatives = []any{"object"}, nil
	}
	if len(types) == 0 {
		for _, a := range alternatives {
			if sub, is := a.(map[string]any); is {
				types = append(types, sub)
			}
		}
	}
	isNull := func(t any) bool {
		sub, _ := t.(map[string]any)
		return t == "null" || sub["type"] == "null"
	}
	if some := slices.DeleteFunc(slices.Clone(types), isNull); len(some) < len(types) && len(some) > 0 {
		types, out["nullable"] = some, true
	}
	switch len(types) {
	case 0:
		return true
	case 1:
		if sub, is := types[0].(map[string]any); is {
			for name, v := range p.plain(sub, depth+1) {
				if out[name] == nil {
					out[name] = v
				}
			}
			return false
		}
		out["type"] = types[0]
		return true
	}
	var some []any
	for _, t := range types {
		sub, is := t.(map[string]any)
		if !is {
			sub = map[string]any{"type": t}
		}
		some = append(some, p.plain(sub, depth+1))
	}
	out["anyOf"] = some
	return false
}

func (p *plainer) object(s, out map[string]any, depth int) {
	members, _ := s["properties"].(map[string]any)
	if len(members) == 0 {
		return
	}
	plain := map[string]any{}
	for name, m := range members {
		sub, _ := m.(map[string]any) // true has no constraint
		plain[name] = p.plain(sub, depth+1)
	}
	out["properties"] = plain
	required, _ := s["required"].([]any)
	required = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
		_, there := plain[fmt.Sprint(name)]
		return !there
	})
	if len(required) > 0 {
		out["required"] = required
	}
}

// resolved follows a reference within the document, and merges allOf.
func (p *plainer) resolved(s map[string]any) map[string]any {
	for p.left--; p.left >= 0; p.left-- {
		ref, is := s["$ref"].(string)
		if !is {
			break
		}
		s = maps.Clone(s)
		delete(s, "$ref")
		s = merged(s, p.at(ref))
	}
	all, _ := s["allOf"].([]any)
	for _, a := range all {
		if sub, is := a.(map[string]any); is && p.left >= 0 {
			s = merged(s, p.resolved(sub))
		}
	}
	return s
}

// at returns the part of the document that a reference names.
func (p *plainer) at(ref string) map[string]any {
	var at any = p.root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#"), "/") {
		if m, _ := at.(map[string]any); part != "" {
			at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
	}
	found, _ := at.(map[string]any)
	return found
}

// merged has the members of both schemas; properties and required are joined.
func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for name, v := range b {
		switch was := out[name].(type) {
		case nil:
			out[name] = v
		case map[string]any:
			if more, is := v.(map[string]any); is && name == "properties" {
				out[name] = merged(was, more)
			}
		case []any:
			if more, is := v.([]any); is && name == "required" {
				out[name] = append(slices.Clone(was), more...)
			}
		}
	}
	return out
}

// note says in the description what a keyword said.
func note(out map[string]any, keyword string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		return
	}
	about, _ := out["description"].(string)
	out["description"] = strings.TrimSpace(about + " (" + keyword + ": " + string(b) + ")")
}
