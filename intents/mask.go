package intents

import (
	"encoding/json"
	"strconv"
	"strings"

	"aob.dev/writ/schemas"
)

// Masked replaces a value that a policy hides.
const Masked = "[masked]"

// Mask replaces what the pointers name in a value. A pointer is an RFC 6901 JSON
// Pointer into it; the token * stands for every member or element at its place.
// Numbers keep their spelling. An unreadable value is masked whole, and so is any
// value if a pointer has no leading "/": it fails closed.
func Mask(value json.RawMessage, pointers []string) json.RawMessage {
	if len(pointers) == 0 {
		return value
	}
	whole := json.RawMessage(`"` + Masked + `"`)
	doc, err := schemas.Decode(value)
	if err != nil {
		return whole
	}
	for _, p := range pointers {
		path, ok := strings.CutPrefix(p, "/")
		if !ok {
			return whole
		}
		doc = maskAt(doc, strings.Split(path, "/"))
	}
	out, err := MarshalPlain(doc)
	if err != nil {
		return whole
	}
	return out
}

func maskAt(v any, path []string) any {
	if len(path) == 0 {
		return Masked
	}
	token := schemas.Unescape(path[0])
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
