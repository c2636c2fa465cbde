package executors

import (
	"bytes"
	"encoding/json"
)

// layout writes a JSON document with one array element a line: the elements of
// each array that stands in no other array. It stays the same document, and a
// sample of its lines is a sample of its elements.
func layout(doc json.RawMessage) ([]byte, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, doc); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(compact.Len() + compact.Len()/64)
	depth, arrays := 0, 0 // brackets that are open, and how many of them are [
	outer := 0            // depth inside the array that stands in no other
	text, escaped := false, false
	in := compact.Bytes()
	for i, c := range in {
		if text {
			out.WriteByte(c)
			text, escaped = escaped || c != '"', !escaped && c == '\\'
			continue
		}
		switch c {
		case '"':
			text = true
		case '{':
			depth++
		case '[':
			depth++
			if arrays++; arrays == 1 {
				outer = depth
			}
		case ']':
			if arrays == 1 && in[i-1] != '[' {
				out.WriteByte('\n')
			}
			arrays--
			depth--
		case '}':
			depth--
		}
		out.WriteByte(c)
		element := c == ',' || c == '[' && in[i+1] != ']'
		if element && arrays == 1 && depth == outer {
			out.WriteByte('\n')
		}
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
