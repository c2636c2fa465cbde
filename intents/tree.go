package intents

import (
	"bytes"
	"encoding/json"
)

// Decoded are the arguments as encoding/json reads them with UseNumber. Do not
// modify. It is nil for an order that was not verified.
func (e *Envelope) Decoded() any { return e.args }

// StringArg is a direct member of the arguments that is a string; else it is empty.
func (e *Envelope) StringArg(name string) string {
	args, _ := e.args.(map[string]any)
	s, _ := args[name].(string)
	return s
}

// decodeCanonical decodes canonical JSON. What it cannot read plainly it leaves
// to encoding/json, which it agrees with.
func decodeCanonical(text []byte) any {
	r := reader{scanner: scanner{b: text}, text: string(text)}
	if v, ok := r.tree(); ok && r.i == len(text) {
		return v
	}
	return decodeSlowly(text)
}

func decodeSlowly(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil // the arguments of a verified order always parse
	}
	return v
}

// tree reads any value. The scanner has been over the text before.
func (r *reader) tree() (any, bool) {
	if r.i >= len(r.text) {
		return nil, false
	}
	switch c := r.text[r.i]; {
	case c == '{':
		object := map[string]any{}
		ok := r.members(func(name string) (ok bool) {
			object[name], ok = r.tree()
			return ok
		})
		return object, ok
	case c == '[':
		return r.elements()
	case c == '"':
		return r.anyText()
	case c == 't':
		return true, r.literal("true")
	case c == 'f':
		return false, r.literal("false")
	case c == 'n':
		return nil, r.literal("null")
	default:
		start := r.i
		ok := r.number()
		return json.Number(r.text[start:r.i]), ok
	}
}

// anyText reads a string. One without escapes stands as it is written.
func (r *reader) anyText() (s string, ok bool) {
	start := r.i
	inside, ok := r.scanner.text()
	if !ok || bytes.IndexByte(inside, '\\') < 0 {
		return r.text[start+1 : max(r.i-1, start+1)], ok
	}
	err := json.Unmarshal(r.b[start:r.i], &s)
	return s, err == nil
}

func (r *reader) elements() (any, bool) {
	list := []any{}
	r.i++
	for first := true; !r.next(']'); first = false {
		if !first && !r.next(',') {
			return nil, false
		}
		v, ok := r.tree()
		if !ok {
			return nil, false
		}
		list = append(list, v)
	}
	return list, true
}
