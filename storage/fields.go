package storage

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"aob.dev/writ/schemas"
)

// FieldKind is how a member of a document is stored and found.
type FieldKind string

// The kinds. A schema says them by type and format; where that is not enough, by
// the annotation "x-writ-kind".
const (
	Keyword FieldKind = "keyword" // matched and sorted as a whole, at most 1 KiB
	Text    FieldKind = "text"    // found by its words; no term, no sort order
	Integer FieldKind = "integer" // 32 bits
	Long    FieldKind = "long"
	Double  FieldKind = "double"
	Boolean FieldKind = "boolean"
	Date    FieldKind = "date"   // RFC 3339, to the millisecond
	Dense   FieldKind = "vector" // an embedding
	Opaque  FieldKind = "opaque" // stored, never searched
	Object  FieldKind = "object" // has members of its own; text among them is found
	Nested  FieldKind = "nested" // an array of such objects
)

// Field is one member. Many: an array of them.
type Field struct {
	Name   string
	Kind   FieldKind
	Many   bool
	Fields []Field // of an object, by name
}

// Fields are the members of an index, by name, as its JSON Schema has them: the
// one list that every driver is made from.
func Fields(index string) ([]Field, error) {
	all, err := fields()
	if err != nil {
		return nil, err
	}
	f, ok := all[index]
	if !ok {
		return nil, fmt.Errorf("storage: no index %q", index)
	}
	return f, nil
}

var fields = sync.OnceValues(func() (map[string][]Field, error) {
	all := make(map[string][]Field)
	for _, index := range Indices {
		source, err := schemas.Source(schemas.Base + "storage/" + index + ".json")
		if err != nil {
			return nil, err
		}
		var root property
		if err := json.Unmarshal(source, &root); err != nil {
			return nil, fmt.Errorf("storage: schema of %s: %w", index, err)
		}
		all[index] = root.fields()
	}
	return all, nil
})

// property is what a field is read from.
type property struct {
	Type       any                 `json:"type"`
	Enum       []any               `json:"enum"`
	Format     string              `json:"format"`
	Maximum    *float64            `json:"maximum"`
	Kind       FieldKind           `json:"x-writ-kind"`
	Items      *property           `json:"items"`
	Properties map[string]property `json:"properties"`
}

func (p property) fields() []Field {
	list := make([]Field, 0, len(p.Properties))
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		list = append(list, p.Properties[name].field(name))
	}
	return list
}

func (p property) field(name string) Field {
	if p.Kind != "" {
		return Field{Name: name, Kind: p.Kind}
	}
	switch p.Type {
	case nil:
		if len(p.Enum) > 0 {
			return Field{Name: name, Kind: Keyword}
		}
	case "string":
		if p.Format == "date-time" {
			return Field{Name: name, Kind: Date}
		}
		return Field{Name: name, Kind: Keyword}
	case "integer":
		if p.Maximum != nil && *p.Maximum <= math.MaxInt32 {
			return Field{Name: name, Kind: Integer}
		}
		return Field{Name: name, Kind: Long}
	case "number":
		return Field{Name: name, Kind: Double}
	case "boolean":
		return Field{Name: name, Kind: Boolean}
	case "object":
		if len(p.Properties) > 0 {
			return Field{Name: name, Kind: Object, Fields: p.fields()}
		}
	case "array":
		if p.Items == nil {
			break
		}
		f := p.Items.field(name)
		f.Many = true
		if f.Kind == Object {
			f.Kind = Nested
		}
		return f
	}
	return Field{Name: name, Kind: Opaque}
}
