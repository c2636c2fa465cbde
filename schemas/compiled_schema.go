package schemas

import (
	"bytes"
	"context"
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
	tree     any                // source, decoded
	compiled *jsonschema.Schema // a foreign one is validated by machines
	machines *machines          // of a foreign schema; nil: ours
}

// ID is the $id of an embedded schema; of a foreign one "sha256:" and the digest of its source.
func (s *Schema) ID() string { return s.id }

// Source is the document as written. Do not modify.
func (s *Schema) Source() json.RawMessage { return s.source }

// Validate checks a value decoded from JSON with json.Number. It returns the violations, at most
// MaxViolations, sorted by pointer; none means valid.
func (s *Schema) Validate(v any) []Violation { return s.validate(context.Background(), v) }

func (s *Schema) validate(ctx context.Context, v any) []Violation {
	if found := unreasonable(v); len(found) > 0 {
		return found
	}
	if s.machines != nil {
		return s.machines.validate(ctx, v)
	}
	return s.violations(s.compiled.Validate(v))
}

// ValidateBytes checks a JSON text. Bytes that are not one JSON value are one
// violation at the root.
func (s *Schema) ValidateBytes(b []byte) []Violation {
	return s.ValidateWithin(context.Background(), b)
}

// ValidateWithin is ValidateBytes until ctx ends. A text whose check did not finish is one
// violation at the root.
func (s *Schema) ValidateWithin(ctx context.Context, b []byte) []Violation {
	v, err := Decode(b)
	if err != nil {
		return []Violation{{Reason: "is not JSON"}}
	}
	return s.validate(ctx, v)
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

// Decode reads one JSON value. Numbers retain their spelling, as json.Number.
func Decode(b []byte) (any, error) {
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

// maxDepth bounds documents; the limits of the bus and the router are far below.
const maxDepth = 256

// unreasonable finds values that would cost the validator too much: numbers that no double can
// represent (it compares exact rationals, so 1e999999 would take a megabyte and milliseconds)
// and nesting beyond maxDepth.
func unreasonable(v any) []Violation {
	var found []Violation
	walk(v, make([]string, 0, 16), &found)
	sortViolations(found)
	return found
}

func walk(v any, path []string, found *[]Violation) {
	switch v := v.(type) {
	case json.Number:
		if !reasonable(string(v)) {
			*found = append(*found, Violation{Pointer: pointer(path), Reason: "number is out of range"})
		}
	case []any:
		if len(path) == maxDepth {
			*found = append(*found, Violation{Pointer: pointer(path), Reason: "is nested too deeply"})
			return
		}
		for i, x := range v {
			if !scalar(x) {
				walk(x, append(path, strconv.Itoa(i)), found)
			}
		}
	case map[string]any:
		if len(path) == maxDepth {
			*found = append(*found, Violation{Pointer: pointer(path), Reason: "is nested too deeply"})
			return
		}
		for name, x := range v {
			if !scalar(x) {
				walk(x, append(path, name), found)
			}
		}
	}
}

// scalar values need no walk.
func scalar(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return len(v) < 4 // "1e9" is the largest exponent of three bytes
	case []any, map[string]any:
		return false
	}
	return true
}

// reasonable checks for at most 400 characters, and an exponent of at most three digits not
// counting leading zeros.
func reasonable(n string) bool {
	if len(n) > 400 {
		return false
	}
	_, exponent, ok := strings.Cut(strings.ToLower(n), "e")
	return !ok || len(strings.TrimLeft(exponent, "+-0")) <= 3
}
