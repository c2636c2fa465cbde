package schemas

import (
	"encoding/json"
	"fmt"
	"strings"

	"aob.dev/writ/internal/visible"
)

// Bounds of what models and clients see of a foreign schema: others write it, and a request to a
// model has all of it.
const (
	maxShownText = 1000     // bytes of a description or another text
	maxShownData = 2 << 10  // bytes of a default, a constant, the examples
	maxShownEnum = 4 << 10  // bytes of the values of an enum
	maxShown     = 64 << 10 // bytes of all
	fewValues    = 10       // named of an enum that is not shown
)

// shown is a schema as models and clients read it.
func (r *repair) shown(root map[string]any) json.RawMessage {
	eachSchema(root, "", func(node map[string]any, at string) {
		for _, name := range []string{"title", "description", "$comment"} {
			if text, ok := node[name].(string); ok {
				node[name] = visible.Cut(visible.Prose(text), maxShownText)
			}
		}
		for _, name := range []string{"default", "const", "examples"} {
			if v, there := node[name]; there && len(plain(v)) > maxShownData {
				delete(node, name)
				r.note(at+"/"+name, fmt.Sprintf("it has more than %d bytes, and models do not see it", maxShownData))
			}
		}
		if values, ok := node["enum"].([]any); ok && len(plain(values)) > maxShownEnum {
			r.note(at+"/enum", fmt.Sprintf("its %d values have more than %d bytes, and models see %d of them", len(values), maxShownEnum, min(len(values), fewValues)))
			delete(node, "enum")
			text, _ := node["description"].(string)
			few := visible.Cut(string(plain(values[:min(len(values), fewValues)])), maxShownText)
			node["description"] = strings.TrimSpace(fmt.Sprintf("%s One of %d values, such as %s", text, len(values), few))
		}
	})
	raw := visible.ProseJSON(plain(root))
	switch {
	case r.lost:
		return outline(root)
	case len(raw) > maxShown:
		r.note("", fmt.Sprintf("it has more than %d bytes, and models see the names of its members", maxShown))
		return outline(root)
	}
	return raw
}

// outline is a schema of the members alone, as far as they are within the bound.
func outline(root map[string]any) json.RawMessage {
	of, _ := root["properties"].(map[string]any)
	members := map[string]any{}
	for name, v := range of {
		one, _ := v.(map[string]any)
		if kind, ok := one["type"]; ok {
			members[name] = map[string]any{"type": kind}
		} else {
			members[name] = map[string]any{}
		}
	}
	raw := visible.ProseJSON(plain(map[string]any{"type": "object", "properties": members}))
	if len(raw) > maxShown {
		return json.RawMessage(`{"type":"object"}`)
	}
	return raw
}
