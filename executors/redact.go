package executors

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/redact"
)

// redactor carries out the obligation redact for one intent.
type redactor struct {
	kinds []string

	mu     sync.Mutex     // guards the rest
	counts map[string]int // by kind
	files  int            // stored, of data that was redacted
}

// redactorOf returns the redactor of a ticket; nil: no policy asks for one.
func redactorOf(obligations []intents.Obligation) *redactor {
	var kinds []string
	for _, ob := range obligations {
		if list, ok := texts(ob.Value); ok && ob.Name == ObligationRedact {
			kinds = append(kinds, list...)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	return &redactor{kinds: kinds, counts: map[string]int{}}
}

// redactKinds reads the value of the obligation.
func redactKinds(v any) bool {
	list, ok := texts(v)
	return ok && len(list) > 0 && !slices.ContainsFunc(list, func(kind string) bool { return !slices.Contains(redact.Kinds(), kind) })
}

// Redacts reports whether a policy has the results of the intent redacted, so that no file may be
// stored whose content cannot be.
func (o *Intent) Redacts() bool { return o.redactor != nil }

// redacted returns content without what a policy has removed from results.
func (r *redactor) redacted(c Content) (Content, error) {
	if r == nil {
		return c, nil
	}
	if len(c.JSON) == 0 {
		c.Text = r.text(c.Text)
		return c, nil
	}
	clean, err := r.json(c.JSON)
	if err == nil && !bytes.Equal(clean, c.JSON) {
		c.JSON, c.Text = clean, ""
	}
	return c, err
}

func (r *redactor) text(s string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return redact.Text(s, r.kinds, r.counts)
}

// json returns a document with its texts, numbers and names redacted; the same bytes if nothing is
// found.
func (r *redactor) json(doc json.RawMessage) (json.RawMessage, error) {
	if len(doc) == 0 {
		return doc, nil
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	before := r.found()
	if v = r.value(v); r.found() == before {
		return doc, nil
	}
	return intents.MarshalPlain(v)
}

func (r *redactor) found() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range maps.Values(r.counts) {
		n += one
	}
	return n
}

func (r *redactor) value(v any) any {
	switch v := v.(type) {
	case string:
		return r.text(v)
	case json.Number:
		if clean := r.text(v.String()); clean != v.String() {
			return clean
		}
	case []any:
		for i := range v {
			v[i] = r.value(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			clean := r.text(name)
			for n := 2; ; n++ { // names that were different stay so
				if _, taken := out[clean]; !taken {
					break
				}
				clean = r.text(name) + " " + strconv.Itoa(n)
			}
			out[clean] = r.value(v[name])
		}
		return out
	}
	return v
}

// result redacts a result, and refuses one with files that were not redacted before they were
// stored.
func (r *redactor) result(raw json.RawMessage) (json.RawMessage, *Failure) {
	if r == nil {
		return raw, nil
	}
	clean, err := r.json(raw)
	if err != nil {
		return nil, Fail(intents.ExecutorFailed, "the result is not JSON")
	}
	if _, files := delivered(clean); files > r.files {
		return nil, Unredacted()
	}
	return clean, nil
}

// Unredacted is the failure of an intent whose result has files, if a policy has it redacted.
func Unredacted() *Failure {
	return Fail(intents.OversizedOutput, "a policy has the result redacted, and what a file of the result holds cannot be")
}

// events reports how much was removed.
func (r *redactor) events() []intents.ReportedEvent {
	if r == nil || r.found() == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[string]any{}
	for kind, n := range r.counts {
		counts[kind] = n
	}
	return []intents.ReportedEvent{NewEvent(catalog.EventRedacted, counts)}
}
