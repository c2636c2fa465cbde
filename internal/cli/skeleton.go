package cli

import (
	"encoding/json"
	"errors"
	"net/url"
	"regexp/syntax"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// skeleton makes arguments that a row's schema accepts: the required members, each with the
// first value that its schema names, or else the smallest that it accepts. The author fills
// in meaningful values.
func skeleton(r typeRow) (json.RawMessage, error) {
	var schema map[string]any
	if err := json.Unmarshal(r.Args, &schema); err != nil {
		return nil, err
	}
	return json.Marshal(specimen(schema, schema, 0))
}

// specimenDepth bounds schemas that refer to themselves.
const specimenDepth = 8

func specimen(root, s map[string]any, depth int) any {
	if ref, ok := s["$ref"].(string); ok && depth < specimenDepth {
		if document, to := resolvedIn(root, ref); to != nil {
			return specimen(document, to, depth+1)
		}
	}
	for _, name := range []string{"const", "default"} {
		if v, ok := s[name]; ok {
			return v
		}
	}
	for _, name := range []string{"examples", "enum"} {
		if list, ok := s[name].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	typ, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok && len(list) > 0 {
		typ, _ = list[0].(string)
	}
	switch typ {
	case "string":
		return specimenText(s)
	case "integer", "number":
		if least, ok := s["minimum"]; ok {
			return least
		}
		return 0
	case "boolean":
		return false
	case "array":
		return specimenList(root, s, depth)
	case "null":
		return nil
	}
	out := map[string]any{}
	if depth < specimenDepth {
		required(root, s, depth, out)
	}
	return out
}

func specimenList(root, s map[string]any, depth int) any {
	items, _ := s["items"].(map[string]any)
	if least, _ := s["minItems"].(float64); least < 1 || items == nil || depth >= specimenDepth {
		return []any{}
	}
	return []any{specimen(root, items, depth+1)}
}

// required fills in the required members. It takes the first of alternatives, and the
// branch of a condition that applies.
func required(root, s map[string]any, depth int, out map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	add := func(of map[string]any) {
		names, _ := of["required"].([]any)
		for _, name := range names {
			name, _ := name.(string)
			member, _ := properties[name].(map[string]any)
			out[name] = specimen(root, member, depth+1)
		}
	}
	add(s)
	if branches, ok := s["oneOf"].([]any); ok && len(branches) > 0 {
		if first, ok := branches[0].(map[string]any); ok {
			add(first)
		}
	}
	if condition, ok := s["if"].(map[string]any); ok {
		branch := "else"
		if holds(condition, out) {
			branch = "then"
		}
		if then, ok := s[branch].(map[string]any); ok {
			add(then)
		}
	}
}

// holds says whether the members have the constant values that a condition names.
func holds(condition, members map[string]any) bool {
	properties, _ := condition["properties"].(map[string]any)
	for name, p := range properties {
		p, _ := p.(map[string]any)
		if want, ok := p["const"]; ok && members[name] != want {
			return false
		}
	}
	return true
}

// resolvedIn follows a reference, even into another document of ours, and returns that
// document, too.
func resolvedIn(root map[string]any, ref string) (document, to map[string]any) {
	if strings.HasPrefix(ref, "#") {
		return root, resolved(root, ref)
	}
	id, _ := root["$id"].(string)
	base, err := url.Parse(id)
	if err != nil {
		return nil, nil
	}
	at, err := base.Parse(ref)
	if err != nil {
		return nil, nil
	}
	fragment := "#" + at.Fragment
	at.Fragment = ""
	s, err := schemas.Lookup(at.String())
	if err != nil || json.Unmarshal(s.Source(), &document) != nil {
		return nil, nil
	}
	if fragment == "#" {
		return document, document
	}
	return document, resolved(document, fragment)
}

// resolved follows a reference within the document.
func resolved(root map[string]any, ref string) map[string]any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := root
	for token := range strings.SplitSeq(path, "/") {
		next, ok := at[token].(map[string]any)
		if !ok {
			return nil
		}
		at = next
	}
	return at
}

// canonicalObject is the canonical form of a JSON object.
func canonicalObject(raw json.RawMessage) (json.RawMessage, error) {
	canonical, err := intents.Canonical(raw)
	if err != nil {
		return nil, err
	}
	if len(canonical) == 0 || canonical[0] != '{' {
		return nil, errors.New("must be a JSON object")
	}
	return canonical, nil
}

// specimenText is a text that a schema accepts: a short one of its pattern, or else one of
// the minimum length.
func specimenText(s map[string]any) string {
	if s["format"] == "date-time" {
		return intents.FormatTime(time.Now())
	}
	if pattern, ok := s["pattern"].(string); ok {
		if re, err := syntax.Parse(pattern, syntax.Perl); err == nil {
			return matching(re.Simplify())
		}
	}
	least, _ := s["minLength"].(float64)
	return strings.Repeat("x", int(min(least, 64)))
}

// matching is a short text that an expression matches, with letters where possible.
// Simplify has removed repetitions with bounds.
func matching(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		return string(letterOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		var b strings.Builder
		for _, sub := range re.Sub {
			b.WriteString(matching(sub))
		}
		return b.String()
	case syntax.OpAlternate:
		return matching(re.Sub[0])
	default: // anchors and optional parts
		return ""
	}
}

// letterOf chooses a character of a class, given as ranges: a readable one, if it has one.
func letterOf(ranges []rune) rune {
	for _, wanted := range "xa0" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= wanted && wanted <= ranges[i+1] {
				return wanted
			}
		}
	}
	if len(ranges) == 0 {
		return 'x'
	}
	return ranges[0]
}
