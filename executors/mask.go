package executors

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Masked stands where a policy's mask took a value away.
const Masked = "[masked]"

// mask replaces what the pointers name in a result. A pointer is an RFC 6901
// JSON Pointer into the result; the token * stands for every member or element
// at its place. Numbers keep their spelling.
func mask(result json.RawMessage, pointers []string) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(result))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return json.RawMessage(`"` + Masked + `"`) // never let through what cannot be read
	}
	for _, p := range pointers {
		doc = maskAt(doc, strings.Split(p, "/")[1:])
	}
	out, err := encode(doc)
	if err != nil {
		return json.RawMessage(`"` + Masked + `"`)
	}
	return out
}

// unescape reads a token of a JSON Pointer.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

func maskAt(v any, path []string) any {
	if len(path) == 0 {
		return Masked
	}
	token := unescape.Replace(path[0])
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			if token == "*" || name == token {
				v[name] = maskAt(v[name], path[1:])
			}
		}
	case []any:
		for i := range v {
			if token == "*" || strconv.Itoa(i) == token {
				v[i] = maskAt(v[i], path[1:])
			}
		}
	}
	return v
}
