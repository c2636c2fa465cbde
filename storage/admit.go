package storage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// DefaultDimension of embeddings.
const DefaultDimension = 1536

// MaxID bounds a document's id in bytes.
const MaxID = 1024

// Check reports whether an index allows a document, given its body as bytes and as their value, numbers
// as json.Number; if not, where and why. It is called concurrently.
type Check func(index string, body []byte, value any) (pointer, reason string, ok bool)

// NewCheck checks documents by the schemas of schemas/storage, and embeddings by
// the dimension that the store is made for.
func NewCheck(dimension int) Check {
	return func(index string, body []byte, value any) (pointer, reason string, ok bool) {
		s, err := schemas.Storage(index)
		if err != nil || !slices.Contains(Indices, index) {
			return "", "no such index", false
		}
		if v := s.Validate(value); len(v) > 0 {
			return v[0].Pointer, v[0].Reason, false
		}
		return checkVectors(index, body, dimension)
	}
}

func checkVectors(index string, body []byte, dimension int) (pointer, reason string, ok bool) {
	list, err := Fields(index)
	if err != nil {
		return "", err.Error(), false
	}
	for _, f := range list {
		if f.Kind != Dense || !bytes.Contains(body, []byte(`"`+f.Name+`"`)) {
			continue
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(body, &members); err != nil || members[f.Name] == nil {
			continue // a member of something else, or no document at all: Admit reports it
		}
		switch values, err := numbers(members[f.Name]); {
		case err != nil:
			return "/" + f.Name, "holds a number that does not fit into 32 bits", false
		case len(values) != dimension:
			return "/" + f.Name, fmt.Sprintf("has %d numbers, and the store is made for %d", len(values), dimension), false
		case !slices.ContainsFunc(values, func(v float64) bool { return v != 0 }):
			return "/" + f.Name, "is all zero, so it has no direction", false
		}
	}
	return "", "", true
}

// numbers of an array that is one of numbers, by its schema. It is the larger part
// of a document with an embedding, and a decoder takes four times as long.
func numbers(raw json.RawMessage) (values []float64, err error) {
	text := strings.TrimSpace(strings.Trim(strings.TrimSpace(string(raw)), "[]"))
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 32)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// ValidDocument is a document that passed the check and may be written.
type ValidDocument struct {
	Document
	Members map[string]any // of the body, numbers as json.Number
	Expires time.Time      // ttl_at; zero: never
}

// Admit refuses what a store must not write, the same for every driver: what
// breaks the schema, and what belongs to another tenant, as *SchemaError.
func Admit(check Check, tenant, index string, doc Document) (ValidDocument, error) {
	refuse := func(pointer, reason string) (ValidDocument, error) {
		return ValidDocument{}, &SchemaError{Index: index, Pointer: pointer, Reason: reason}
	}
	if tenant == "" || doc.ID == "" || len(doc.ID) > MaxID {
		return ValidDocument{}, fmt.Errorf("a document needs a tenant and an id of 1 to %d bytes", MaxID)
	}
	value, err := schemas.Decode(doc.Body)
	if err != nil {
		return refuse("", "is not JSON")
	}
	if pointer, reason, ok := check(index, doc.Body, value); !ok {
		return refuse(pointer, reason)
	}
	if !utf8.Valid(doc.Body) {
		return refuse("", "not UTF-8")
	}
	a := ValidDocument{Document: doc}
	if a.Members, _ = value.(map[string]any); a.Members == nil {
		return refuse("", "not a JSON object")
	}
	if owner, ok := a.Members["tenant_id"]; ok && owner != tenant {
		return refuse("/tenant_id", "is not the tenant that writes")
	}
	if at, ok := a.Members["ttl_at"].(string); ok {
		t, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return refuse("/ttl_at", "not an RFC 3339 time")
		}
		a.Expires = t
	}
	return a, nil
}

// Value is the term that a member's JSON value is found by: a string, an int64
// or a float64. Values of another kind than the field's have none.
func (f Field) Value(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		switch f.Kind {
		case Keyword:
			return v, true
		case Date:
			t, err := time.Parse(time.RFC3339, v)
			return intents.FormatTime(t), err == nil
		default:
			return nil, false
		}
	case bool:
		return fmt.Sprint(v), f.Kind == Boolean
	case json.Number:
		if f.Kind != Integer && f.Kind != Long && f.Kind != Double {
			return nil, false
		}
		if i, err := v.Int64(); err == nil {
			return i, true
		}
		n, err := v.Float64()
		return n, err == nil
	default:
		return nil, false
	}
}

// Parse reads a value as a query writes it; see Query.Terms.
func (f Field) Parse(text string) (any, bool) {
	switch f.Kind {
	case Keyword, Date:
		return f.Value(text)
	case Boolean:
		return text, text == "true" || text == "false"
	case Integer, Long, Double:
		if !json.Valid([]byte(text)) || strings.TrimSpace(text) != text {
			return nil, false
		}
		return f.Value(json.Number(text))
	default:
		return nil, false
	}
}
