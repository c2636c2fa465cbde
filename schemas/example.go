package schemas

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Part is the part of a schema that describes one place in a document. The zero value
// describes nothing.
type Part struct{ schema *jsonschema.Schema }

// Part for a JSON Pointer into a document.
func (s *Schema) Part(pointer string) Part {
	at := target(s.compiled)
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" || at == nil {
			break
		}
		next := at.Properties[token]
		if next == nil {
			next = at.Items2020
		}
		at = target(next)
	}
	return Part{at}
}

// target is the schema that a schema refers to, or the schema itself.
func target(s *jsonschema.Schema) *jsonschema.Schema {
	if s != nil && s.Ref != nil {
		return target(s.Ref)
	}
	return s
}

// Members lists the members that the schema names at this place.
func (p Part) Members() []string {
	if p.schema == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(p.schema.Properties))
}

// exampleDepth bounds examples of schemas that refer to themselves.
const exampleDepth = 8

// Example is a value that the schema accepts at this place, with the required members only: the
// first value that the schema names, or else the smallest.
func (p Part) Example() any { return example(p.schema, 0) }

func example(s *jsonschema.Schema, depth int) any {
	s = target(s)
	switch {
	case s == nil:
		return map[string]any{}
	case s.Const != nil:
		return *s.Const
	case s.Default != nil:
		return *s.Default
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Enum != nil && len(s.Enum.Values) > 0:
		return s.Enum.Values[0]
	}
	typ := "object"
	if s.Types != nil {
		all := s.Types.ToStrings() // null comes first
		typ = all[len(all)-1]
	}
	switch typ {
	case "string":
		return exampleText(s)
	case "integer", "number":
		if s.Minimum != nil {
			return json.Number(s.Minimum.FloatString(0))
		}
		return 0
	case "boolean":
		return false
	case "array":
		if s.MinItems == nil || *s.MinItems < 1 || s.Items2020 == nil || depth >= exampleDepth {
			return []any{}
		}
		return []any{example(s.Items2020, depth+1)}
	case "null":
		return nil
	}
	out := map[string]any{}
	if depth < exampleDepth {
		addRequired(s, depth, out)
	}
	return out
}

// addRequired adds the required members. It takes the first of alternatives, and the
// branch of a condition that applies.
func addRequired(s *jsonschema.Schema, depth int, out map[string]any) {
	var add func(of *jsonschema.Schema)
	add = func(of *jsonschema.Schema) {
		if of == nil {
			return
		}
		for _, name := range of.Required {
			out[name] = example(s.Properties[name], depth+1)
		}
		if len(of.OneOf) > 0 {
			add(of.OneOf[0])
		}
	}
	add(s)
	if s.If == nil {
		return
	}
	for name, p := range s.If.Properties {
		if p.Const != nil && !reflect.DeepEqual(out[name], *p.Const) {
			add(s.Else)
			return
		}
	}
	add(s.Then)
}

// exampleText is a text that a schema accepts: a short one of its pattern, or else one of
// the minimum length.
func exampleText(s *jsonschema.Schema) string {
	switch {
	case s.Format != nil && s.Format.Name == "date-time":
		return time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	case s.Pattern != nil:
		if re, err := syntax.Parse(s.Pattern.String(), syntax.Perl); err == nil {
			return matching(re.Simplify())
		}
	case s.MinLength != nil:
		return strings.Repeat("x", min(*s.MinLength, 64))
	}
	return ""
}

// matching is a short text that an expression matches, with letters if possible. Simplify has
// removed repetitions with bounds.
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

// letterOf chooses a character of a class, given as ranges: a readable one if possible.
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
