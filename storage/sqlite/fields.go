package sqlite

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"aob.dev/writ/storage"
)

const (
	// termLimit bounds a term in bytes. Longer strings are no terms, and sort as
	// if they were missing; every keyword member of the schemas is shorter.
	termLimit = 1024
	// elementLimit bounds how many elements of an array become terms.
	elementLimit = 256
	// arrayMark is added to the name of a member whose terms are an array's
	// elements: they are matched, but there is no one value to sort by.
	arrayMark = "[]"
)

// term is one value of one member.
type term struct {
	member string
	value  any // string, int64 or float64
}

// vector is the embedding of one member, its numbers as SQLite's functions have them.
type vector struct {
	member string
	value  []byte
}

// entries are what a document is found by. They follow from its body and the
// fields of its index, so that they can be made again.
type entries struct {
	terms   []term
	words   string
	vectors []vector
}

// preparedDocument is a document with everything that is stored beside it.
type preparedDocument struct {
	storage.Document
	entries
	ttl *int64 // milliseconds
}

// prepare refuses what the index does not allow, and splits the rest.
func (d *Documents) prepare(tenant, index string, doc storage.Document) (preparedDocument, error) {
	a, err := storage.Admit(d.check, tenant, index, doc)
	if err != nil {
		return preparedDocument{}, err
	}
	p := preparedDocument{Document: a.Document}
	if !d.bare {
		if p.entries, err = entriesOf(index, a.Members); err != nil {
			return preparedDocument{}, err
		}
	}
	if !a.Expires.IsZero() {
		ms := a.Expires.UnixMilli()
		p.ttl = &ms
	}
	return p, nil
}

// entriesOf are the entries of a stored document.
func (d *Documents) entriesOf(index string, body []byte) (entries, error) {
	if d.bare {
		return entries{}, nil
	}
	return entriesOfBody(index, body)
}

func entriesOfBody(index string, body []byte) (entries, error) {
	var members map[string]any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&members); err != nil {
		return entries{}, fmt.Errorf("stored document: %w", err)
	}
	return entriesOf(index, members)
}

func entriesOf(index string, members map[string]any) (entries, error) {
	fields, err := storage.Fields(index)
	if err != nil {
		return entries{}, err
	}
	var e entries
	for _, f := range fields {
		v, ok := members[f.Name]
		if !ok {
			continue
		}
		if f.Kind == storage.Dense {
			if value := vectorOf(v); value != nil {
				e.vectors = append(e.vectors, vector{f.Name, value})
			}
			continue
		}
		e.terms = append(e.terms, terms(f, v)...)
	}
	slices.SortFunc(e.terms, compareTerms)
	e.terms = slices.Compact(e.terms)
	var words strings.Builder
	writeWords(&words, fields, members)
	e.words = words.String()
	return e, nil
}

// terms of one member.
func terms(f storage.Field, v any) (list []term) {
	name, values := f.Name, []any{v}
	if elements, ok := v.([]any); ok {
		name, values = name+arrayMark, elements[:min(len(elements), elementLimit)]
	}
	for _, v := range values {
		value, ok := f.Value(v)
		if s, text := value.(string); ok && (!text || len(s) <= termLimit) {
			list = append(list, term{name, value})
		}
	}
	return list
}

func compareTerms(a, b term) int {
	if c := strings.Compare(a.member, b.member); c != 0 {
		return c
	}
	return strings.Compare(fmt.Sprint(a.value), fmt.Sprint(b.value))
}

// vectorOf is nil if v is not a vector: the check refuses those before.
func vectorOf(v any) []byte {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	values := make([]float32, len(list))
	for i, v := range list {
		n, ok := v.(json.Number)
		if !ok {
			return nil
		}
		f, err := n.Float64()
		if err != nil {
			return nil
		}
		values[i] = float32(f)
	}
	return vectorBytes(values)
}

func vectorBytes(values []float32) []byte {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// writeWords joins what full-text search reads, at any depth.
func writeWords(b *strings.Builder, fields []storage.Field, members map[string]any) {
	for _, f := range fields {
		elements, many := members[f.Name].([]any)
		if !many {
			elements = []any{members[f.Name]}
		}
		for _, v := range elements {
			switch v := v.(type) {
			case string:
				if f.Kind == storage.Text {
					b.WriteString(v)
					b.WriteByte('\n')
				}
			case map[string]any:
				writeWords(b, f.Fields, v)
			}
		}
	}
}
