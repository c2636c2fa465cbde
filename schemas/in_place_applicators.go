package schemas

import "github.com/santhosh-tekuri/jsonschema/v6"

// alike lists the schema objects that a schema object applies to the same value as
// itself.
func alike(s *jsonschema.Schema) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	add := func(more ...*jsonschema.Schema) {
		for _, x := range more {
			if x != nil {
				out = append(out, x)
			}
		}
	}
	add(s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		add(s.DynamicRef.Ref)
	}
	add(s.AllOf...)
	add(s.AnyOf...)
	add(s.OneOf...)
	for _, x := range s.DependentSchemas {
		add(x)
	}
	for _, x := range s.Dependencies {
		add(schemaOf(x))
	}
	return out
}

// tuple is the schema objects of the first items of an array.
func tuple(s *jsonschema.Schema) []*jsonschema.Schema {
	if items, ok := s.Items.([]*jsonschema.Schema); ok {
		return items
	}
	return s.PrefixItems
}

// schemaOf a keyword that may have a value of another kind.
func schemaOf(v any) *jsonschema.Schema {
	s, _ := v.(*jsonschema.Schema)
	return s
}

// longest is the largest number of schema objects that one value can meet nested in each other.
// At each, the validator looks back along all of them for a cycle.
func longest(all map[*jsonschema.Schema]*charge) int {
	below := make(map[*jsonschema.Schema]int, len(all)) // 0: in progress
	var count func(s *jsonschema.Schema) int
	count = func(s *jsonschema.Schema) int {
		if n, met := below[s]; met {
			if n == 0 {
				return len(all) // a cycle: as many as there are
			}
			return n
		}
		below[s] = 0
		n := 1
		for _, x := range alike(s) {
			n = max(n, min(1+count(x), len(all)))
		}
		below[s] = n
		return n
	}
	n := 0
	for s := range all {
		n = max(n, count(s))
	}
	return n
}
