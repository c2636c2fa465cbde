package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"aob.dev/writ/internal/visible"
)

// inputSchema collects the input of a tool.
type inputSchema struct {
	properties map[string]any
	required   []string
	schemas    schemaReader
}

func (in *inputSchema) add(name, about string, required bool, ref *openapi3.SchemaRef) error {
	schema := any(map[string]any{})
	if ref != nil {
		var err error
		if schema, err = in.schemas.read(ref); err != nil {
			return err
		}
	}
	if members, ok := schema.(map[string]any); ok && about != "" && members["description"] == nil {
		members["description"] = about
	}
	in.properties[name] = schema
	if required {
		in.required = append(in.required, name)
	}
	return nil
}

// schema is the whole schema, with the definitions that it refers to.
func (in *inputSchema) schema() (map[string]any, error) {
	out := map[string]any{"type": "object", "properties": in.properties, "additionalProperties": false}
	if len(in.required) > 0 {
		slices.Sort(in.required)
		out["required"] = in.required
	}
	if err := in.schemas.close(); err != nil {
		return nil, err
	}
	if len(in.schemas.defs) > 0 {
		out["$defs"] = in.schemas.defs
	}
	return out, nil
}

// schemaReader makes JSON Schema of a document's schemas.
type schemaReader struct {
	doc  *openapi3.T
	defs map[string]any // components that are referred to; nil: not read yet
}

const components = "#/components/schemas/"

func (r *schemaReader) read(ref *openapi3.SchemaRef) (any, error) {
	raw, err := json.Marshal(ref)
	if err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return v, r.translate(v)
}

// close reads the components that schemas refer to, and those that these refer to.
func (r *schemaReader) close() error {
	for {
		i := slices.IndexFunc(slices.Sorted(maps.Keys(r.defs)), func(name string) bool { return r.defs[name] == nil })
		if i < 0 {
			return nil
		}
		name := slices.Sorted(maps.Keys(r.defs))[i]
		plain := strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if r.doc.Components == nil || r.doc.Components.Schemas[plain] == nil {
			return fmt.Errorf("its schema refers to %s, which the document does not have", visible.Line(components+name, maxName))
		}
		schema, err := r.read(r.doc.Components.Schemas[plain])
		if err != nil {
			return err
		}
		r.defs[name] = schema
	}
}

// Members of a schema that are schemas, lists of them, or maps of them.
var (
	subschemas  = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems"}
	schemaLists = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	schemaMaps  = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)

// translate makes JSON Schema of a schema of OpenAPI 3.0 in place, and resolves references.
func (r *schemaReader) translate(v any) error {
	s, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if ref, ok := s["$ref"].(string); ok {
		name, local := strings.CutPrefix(ref, components)
		if !local {
			return fmt.Errorf("its schema refers to %s, which is none of %s", visible.Line(ref, maxName), components)
		}
		s["$ref"] = "#/$defs/" + name
		name, _, _ = strings.Cut(name, "/")
		if _, known := r.defs[name]; !known {
			r.defs[name] = nil // read later
		}
	}
	fromOpenAPI(s)
	var inner []any
	for _, name := range subschemas {
		inner = append(inner, s[name])
	}
	for _, name := range schemaLists {
		list, _ := s[name].([]any)
		inner = append(inner, list...)
	}
	for _, name := range schemaMaps {
		members, _ := s[name].(map[string]any)
		inner = slices.AppendSeq(inner, maps.Values(members))
	}
	for _, x := range inner {
		if err := r.translate(x); err != nil {
			return err
		}
	}
	return nil
}

// fromOpenAPI replaces what OpenAPI 3.0 has in the place of JSON Schema's own members, and drops
// what no caller needs.
func fromOpenAPI(s map[string]any) {
	if s["nullable"] == true {
		if one, ok := s["type"].(string); ok {
			s["type"] = []any{one, "null"}
		}
		if list, ok := s["enum"].([]any); ok && !slices.Contains(list, nil) {
			s["enum"] = append(list, nil)
		}
	}
	for exclusive, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		switch s[exclusive] {
		case true:
			s[exclusive] = s[bound]
			delete(s, bound)
		case false:
			delete(s, exclusive)
		}
	}
	for _, name := range []string{"nullable", "example", "xml", "externalDocs", "discriminator"} {
		delete(s, name)
	}
}
