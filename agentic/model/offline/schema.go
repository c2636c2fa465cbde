package offline

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// schema is the supported part of JSON Schema. Other parts are ignored: reading never fails.
type schema struct {
	Type        types              `json:"type"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Enum        []any              `json:"enum"`
	Examples    []any              `json:"examples"`
	Const       any                `json:"const"`
	Default     any                `json:"default"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Items       *schema            `json:"items"`
	Ref         string             `json:"$ref"`
	Defs        map[string]*schema `json:"$defs"`
	AnyOf       []*schema          `json:"anyOf"`
}

// types are the types that a schema allows.
type types []string

func (t *types) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) != nil {
		return json.Unmarshal(b, (*[]string)(t))
	}
	*t = types{one}
	return nil
}

func (s *schema) UnmarshalJSON(b []byte) error {
	type fields schema
	_ = json.Unmarshal(b, (*fields)(s)) // a boolean or invalid schema says nothing
	maps.DeleteFunc(s.Properties, func(_ string, p *schema) bool { return p == nil })
	return nil
}

func readSchema(raw json.RawMessage) *schema {
	s := new(schema)
	_ = json.Unmarshal(raw, s)
	return s
}

// resolve follows references to the definitions of root, and selects the one alternative besides
// null.
func (s *schema) resolve(root *schema) *schema {
	var outer schema
	for range 8 {
		if s == nil {
			break
		}
		null := slices.IndexFunc(s.AnyOf, func(a *schema) bool { return a != nil && slices.Equal(a.Type, types{"null"}) })
		name, ref := strings.CutPrefix(s.Ref, "#/$defs/")
		switch {
		case null >= 0 && len(s.AnyOf) == 2:
			outer = schema{Type: types{"null"}, Title: s.Title, Description: s.Description}
			s = s.AnyOf[1-null]
		case ref:
			s = root.Defs[name]
		default:
			one := *s
			one.Type = slices.Concat(one.Type, outer.Type)
			one.Title, one.Description = cmp.Or(outer.Title, one.Title), cmp.Or(outer.Description, one.Description)
			return &one
		}
	}
	return new(schema)
}

// kind returns the one type besides null; empty if there is none or several.
func (s *schema) kind() string {
	list := slices.DeleteFunc(slices.Clone(s.Type), func(t string) bool { return t == "null" })
	switch {
	case len(list) == 1:
		return list[0]
	case len(list) > 1:
		return ""
	case len(s.Properties) > 0:
		return "object"
	case s.Items != nil:
		return "array"
	case len(s.values()) > 0:
		return "string"
	}
	return ""
}

func (s *schema) nullable() bool {
	return slices.Contains(s.Type, "null") || slices.Contains(s.Enum, nil)
}

// values returns the texts that a schema enumerates or gives as examples.
func (s *schema) values() []string {
	var out []string
	for _, v := range slices.Concat(s.Enum, s.Examples) {
		if text, ok := v.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// members returns the names of the properties, sorted: canonical JSON retains no other order.
func (s *schema) members() []string { return slices.Sorted(maps.Keys(s.Properties)) }
