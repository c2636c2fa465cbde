package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type Schema struct {
	id       string
	source   json.RawMessage
	tree     any // source, decoded
	compiled *jsonschema.Schema
	budget   *budget // of a foreign schema; nil: ours
}

// ID is the $id of an embedded schema; of a foreign one "sha256:" and the digest of its source.
func (s *Schema) ID() string { return s.id }

// Source is the document as written. Do not modify.
func (s *Schema) Source() json.RawMessage { return s.source }

// Validate checks a value as decoded from JSON with json.Number. It returns
// every violation, sorted by pointer; none means valid.
func (s *Schema) Validate(v any) []Violation {
	if found := unreasonable(v, "", nil); found != nil {
		return found
	}
	if s.budget != nil {
		return s.budget.validate(s, v)
	}
	return s.violations(s.compiled.Validate(v))
}

// ValidateBytes checks a JSON text. Bytes that are not one JSON value are one
// violation at the root.
func (s *Schema) ValidateBytes(b []byte) []Violation {
	v, err := decode(b)
	if err != nil {
		return []Violation{{Reason: "is not JSON"}}
	}
	return s.Validate(v)
}

func (s *Schema) violations(err error) []Violation {
	if err == nil {
		return nil
	}
	var failed *jsonschema.ValidationError
	if !errors.As(err, &failed) {
		return []Violation{{Reason: "cannot be checked"}}
	}
	return collect(failed, s.tree)
}

var errTrailing = errors.New("more than one JSON value")

func decode(b []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errTrailing
	}
	return v, nil
}

// unreasonable finds numbers that no double can hold. The validator compares
// with exact rationals, so 1e999999 would cost it a megabyte and milliseconds.
func unreasonable(v any, pointer string, found []Violation) []Violation {
	switch v := v.(type) {
	case json.Number:
		if !reasonable(string(v)) {
			found = append(found, Violation{Pointer: pointer, Reason: "number is out of range"})
		}
	case []any:
		for i, x := range v {
			switch x.(type) {
			case json.Number, []any, map[string]any:
				found = unreasonable(x, pointer+"/"+strconv.Itoa(i), found)
			}
		}
	case map[string]any:
		for name, x := range v {
			switch x.(type) {
			case json.Number, []any, map[string]any:
				found = unreasonable(x, pointer+"/"+escape(name), found)
			}
		}
	}
	if pointer == "" {
		sortViolations(found)
	}
	return found
}

// reasonable: at most 400 characters, and an exponent of at most three digits
// not counting leading zeros.
func reasonable(n string) bool {
	if len(n) > 400 {
		return false
	}
	_, exponent, ok := strings.Cut(strings.ToLower(n), "e")
	return !ok || len(strings.TrimLeft(exponent, "+-0")) <= 3
}
