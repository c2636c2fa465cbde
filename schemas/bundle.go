package schemas

import (
	"encoding/json"
	"fmt"
	"net/url"
)

// Bundle is a schema with the documents of this package that it refers to, directly or not, as
// subschemas with an $id of their own (JSON Schema 2020-12 core, section 9.3): readers need no
// other document. A schema that already contains them, or refers to none, is unchanged.
func Bundle(source []byte) (json.RawMessage, error) {
	l, err := embedded()
	if err != nil {
		return nil, fmt.Errorf("schemas: %w", err)
	}
	tree, err := Decode(source)
	root, ok := tree.(map[string]any)
	if err != nil || !ok {
		return source, nil //nolint:nilerr // a schema that is no object refers to nothing, and is compiled or refused as it is
	}
	defs, _ := root["$defs"].(map[string]any)
	added := map[string]any{}
	id, _ := root["$id"].(string)
	l.refers(root, id, func(other string, doc any) bool {
		_, there := defs[other]
		if _, twice := added[other]; there || twice || other == id {
			return false
		}
		added[other] = doc
		return true
	})
	if len(added) == 0 {
		return source, nil
	}
	whole := map[string]any{}
	for name, def := range defs {
		whole[name] = def
	}
	for name, def := range added {
		whole[name] = def
	}
	out := map[string]any{}
	for name, v := range root {
		out[name] = v
	}
	out["$defs"] = whole
	return json.Marshal(out)
}

// refers calls found with every embedded document that a schema refers to, and descends into
// those for which found returns true.
func (l *library) refers(v any, base string, found func(id string, doc any) bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			l.refers(x, base, found)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			if id, ok := resolveRef(base, ref); ok {
				if doc, known := l.docs[id]; known && found(id, doc.tree) {
					l.refers(doc.tree, id, found)
				}
			}
		}
		for _, x := range v {
			l.refers(x, base, found)
		}
	}
}

// resolveRef is the document that a $ref names.
func resolveRef(base, ref string) (string, bool) {
	b, err := url.Parse(base)
	if err != nil {
		return "", false
	}
	r, err := b.Parse(ref)
	if err != nil {
		return "", false
	}
	r.Fragment = ""
	return r.String(), true
}
