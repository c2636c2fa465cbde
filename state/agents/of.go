package agents

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
)

// Of makes an agent from a Go struct: its fields are the properties, named as encoding/json
// names them, with the tags description and enum (a,b,c). Pointers and fields with omitempty or
// omitzero are not required. The blank field has the agent's name and description; rest has
// everything that a struct cannot express.
//
//	type Ranker struct {
//		_     struct{} `agent:"ranker" description:"You rank outlets."`
//		Topic string   `json:"topic" description:"Primary topic of the question"`
//	}
//
// A structured result decodes into T.
func Of[T any](rest Agent) (*Agent, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s is no struct", t)
	}
	for f := range t.Fields() {
		if name, ok := f.Tag.Lookup("agent"); ok && f.Name == "_" {
			rest.Name, rest.Description = name, f.Tag.Get("description")
		}
	}
	object, err := objectOf(t, nil)
	if err != nil {
		return nil, err
	}
	rest.Properties, rest.Required = object.Properties, object.Required
	if len(rest.Required) == len(rest.Properties) {
		rest.Required = nil // all
	}
	return New(rest)
}

// shape is the JSON Schema of a Go type.
type shape struct {
	Type        string     `json:"type,omitempty"`
	Description string     `json:"description,omitempty"`
	Format      string     `json:"format,omitempty"`
	Enum        []string   `json:"enum,omitempty"`
	Items       *shape     `json:"items,omitempty"`
	Properties  Properties `json:"properties,omitempty"`
	Required    []string   `json:"required,omitempty"`
	Additional  any        `json:"additionalProperties,omitempty"` // *shape of a map's values; false
}

// objectOf a struct; inside are the structs around it.
func objectOf(t reflect.Type, inside []reflect.Type) (*shape, error) {
	if slices.Contains(inside, t) {
		return nil, fmt.Errorf("%s contains itself", t)
	}
	object := &shape{Type: "object", Additional: false}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" && options == "" {
			continue
		}
		if f.Anonymous && name == "" {
			return nil, fmt.Errorf("%s.%s: give the embedded field a name", t, f.Name)
		}
		if name == "" {
			name = f.Name
		}
		s, err := shapeOf(f.Type, append(slices.Clip(inside), t))
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		s.Description = f.Tag.Get("description")
		if enum := f.Tag.Get("enum"); enum != "" {
			s.Enum = strings.Split(enum, ",")
		}
		text, err := intents.MarshalPlain(s)
		if err != nil {
			return nil, err
		}
		object.Properties = append(object.Properties, Property{name, text})
		if f.Type.Kind() != reflect.Pointer && !strings.Contains(options, "omit") {
			object.Required = append(object.Required, name)
		}
	}
	return object, nil
}

func shapeOf(t reflect.Type, inside []reflect.Type) (*shape, error) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return &shape{Type: "string", Format: "date-time"}, nil
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any]():
		return &shape{}, nil
	}
	switch t.Kind() { //nolint:exhaustive // others have no JSON
	case reflect.String:
		return &shape{Type: "string"}, nil
	case reflect.Bool:
		return &shape{Type: "boolean"}, nil
	case reflect.Float32, reflect.Float64:
		return &shape{Type: "number"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &shape{Type: "integer"}, nil
	case reflect.Pointer:
		return shapeOf(t.Elem(), inside)
	case reflect.Struct:
		return objectOf(t, inside)
	case reflect.Slice, reflect.Array:
		items, err := shapeOf(t.Elem(), inside)
		return &shape{Type: "array", Items: items}, err
	case reflect.Map:
		values, err := shapeOf(t.Elem(), inside)
		return &shape{Type: "object", Additional: values}, err
	}
	return nil, fmt.Errorf("%s has no JSON Schema", t)
}
