package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"aob.dev/writ/storage"
)

const (
	// idLimit bounds a document's id in bytes.
	idLimit = 1024
	// termLimit bounds a term in bytes. Longer strings are no terms, and sort as
	// if they were missing; every keyword member of the schemas is shorter.
	termLimit = 1024
	// elementLimit bounds how many elements of an array become terms.
	elementLimit = 256
	// arrayMark is added to the name of a member whose terms are an array's
	// elements: they are matched, but there is no one value to sort by.
	arrayMark = "[]"
)

// textMembers are what full-text search reads, at any depth. They are no terms.
// An index that is not listed is searched in all its strings.
var textMembers = map[string][]string{
	storage.IndexMemory:   {"text"},
	storage.IndexPlans:    {"task", "failure_reason", "reason", "response"},
	storage.IndexSouls:    {"system_prompt"},
	storage.IndexSessions: {"content"},
	storage.IndexMessages: {"content"},
	storage.IndexEvents:   {},
}

// term is one value of one member.
type term struct {
	member string
	value  any // string, int64 or float64
}

// prepared is a document with everything that is stored beside it.
type prepared struct {
	storage.Document
	ttl   *int64 // milliseconds
	terms []term
	words string
}

// prepare refuses what the index does not allow, and takes the rest apart.
func (d *Documents) prepare(tenant, index string, doc storage.Document) (prepared, error) {
	refuse := func(pointer, reason string) (prepared, error) {
		return prepared{}, &storage.SchemaError{Index: index, Pointer: pointer, Reason: reason}
	}
	if tenant == "" || doc.ID == "" || len(doc.ID) > idLimit {
		return prepared{}, fmt.Errorf("a document needs a tenant and an id of 1 to %d bytes", idLimit)
	}
	if pointer, reason, ok := d.check(index, doc.Body); !ok {
		return refuse(pointer, reason)
	}
	if !utf8.Valid(doc.Body) {
		return refuse("", "not UTF-8")
	}
	var members map[string]any
	dec := json.NewDecoder(bytes.NewReader(doc.Body))
	dec.UseNumber()
	if err := dec.Decode(&members); err != nil || members == nil || dec.More() {
		return refuse("", "not a JSON object")
	}
	if owner, ok := members["tenant_id"]; ok && owner != tenant {
		return refuse("/tenant_id", "is not the tenant that writes")
	}
	p := prepared{Document: doc, terms: terms(index, members), words: words(index, members)}
	if at, ok := members["ttl_at"].(string); ok {
		t, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return refuse("/ttl_at", "not an RFC 3339 time")
		}
		ms := t.UnixMilli()
		p.ttl = &ms
	}
	return p, nil
}

// terms of a document, sorted by member, no two alike.
func terms(index string, members map[string]any) []term {
	var list []term
	for name, v := range members {
		if slices.Contains(textMembers[index], name) {
			continue
		}
		if value, ok := termValue(v); ok {
			list = append(list, term{name, value})
		}
		if elements, ok := v.([]any); ok {
			for _, e := range elements[:min(len(elements), elementLimit)] {
				// Only strings: an embedding is no set of terms.
				if s, ok := e.(string); ok && len(s) <= termLimit {
					list = append(list, term{name + arrayMark, s})
				}
			}
		}
	}
	slices.SortFunc(list, compareTerms)
	return slices.Compact(list)
}

func compareTerms(a, b term) int {
	if c := strings.Compare(a.member, b.member); c != 0 {
		return c
	}
	return strings.Compare(fmt.Sprint(a.value), fmt.Sprint(b.value))
}

func termValue(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, len(v) <= termLimit
	case bool:
		return fmt.Sprint(v), true
	case json.Number:
		return number(v)
	default:
		return nil, false
	}
}

// number is an int64 where it can be, as SQLite's own JSON functions have it.
func number(n json.Number) (any, bool) {
	if i, err := n.Int64(); err == nil {
		return i, true
	}
	f, err := n.Float64()
	return f, err == nil
}

// words joins what full-text search reads.
func words(index string, members map[string]any) string {
	names, listed := textMembers[index]
	var b strings.Builder
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case string:
			if !listed || slices.Contains(names, name) {
				b.WriteString(v)
				b.WriteByte('\n')
			}
		case []any:
			for _, e := range v {
				walk(name, e)
			}
		case map[string]any:
			for n, e := range v {
				walk(n, e)
			}
		}
	}
	walk("", members)
	return b.String()
}
