package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"aob.dev/writ/internal/visible"
)

// Tolerant is a foreign schema as far as it can be used. Schema checks what can be checked; the
// server of a tool checks the rest itself.
type Tolerant struct {
	*Schema
	// Shown is the schema for models and clients: in a form that they can read, with long texts and
	// lists cut, and with every character of its texts visible. It retains patterns that Schema
	// cannot match.
	Shown json.RawMessage
	// Notes say what is not checked, or not shown, and where; for those who approve the tool.
	Notes []string
}

// drafts are those that a schema may say it is of. Others are read as 2020-12.
var drafts = []string{"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema"}

// maxNotes bounds the notes on one schema.
const maxNotes = 20

// Tolerate reads a foreign schema. What of it is malformed, refers to another document or cannot be
// compiled is left out, with a note; a schema that is nothing but that accepts everything. As with
// Compile, nothing is fetched, results are cached, and validation is bounded.
func Tolerate(source []byte) *Tolerant {
	sum := sha256.Sum256(source)
	if t, ok := tolerated.Get(sum); ok {
		return t
	}
	t := tolerate(source)
	tolerated.Add(sum, t)
	return t
}

var tolerated, _ = lru.New[[32]byte, *Tolerant](cached) // fails only for size 0

func tolerate(source []byte) *Tolerant {
	r := &repair{}
	tree, err := Decode(source)
	root, object := tree.(map[string]any)
	switch {
	case err != nil || !isSchema(tree):
		r.note("", "it is no schema, so that nothing is checked")
		fallthrough
	case !object && tree != false:
		root = map[string]any{}
	case !object:
		root = map[string]any{"not": map[string]any{}}
	}
	before := plain(root)
	r.root = root
	s, err := Compile(source)
	if err != nil || !object || old(root) {
		r.mend(root)
		s = r.checkable(root)
	}
	t := &Tolerant{Schema: s, Shown: r.shown(root)}
	if object && len(r.notes) == 0 && bytes.Equal(t.Shown, before) {
		t.Shown = source // with its members in their order
	}
	if t.Notes = r.notes; len(t.Notes) > maxNotes {
		t.Notes = append(slices.Clone(t.Notes[:maxNotes]), fmt.Sprintf("and %d more", len(r.notes)-maxNotes))
	}
	return t
}

// old reports a bound of draft 4 in a schema, which later drafts refuse.
func old(root map[string]any) (found bool) {
	eachSchema(root, "", func(node map[string]any, _ string) {
		_, low := node["exclusiveMinimum"].(bool)
		_, high := node["exclusiveMaximum"].(bool)
		found = found || low || high
	})
	return found
}

// repair is the mending of one schema, in place.
type repair struct {
	root  map[string]any
	notes []string
	lost  bool // it cannot be compiled
}

func (r *repair) note(at, text string) {
	if at != "" {
		text = visible.Line(at, maxPointer) + ": " + text
	}
	r.notes = append(r.notes, text)
}

// mend makes a schema one of its draft, or of 2020-12, apart from its patterns.
func (r *repair) mend(root map[string]any) {
	draft, _ := root["$schema"].(string)
	if !slices.Contains(drafts, strings.TrimSuffix(draft, "#")) {
		draft = ""
		delete(root, "$schema")
	}
	names := r.names()
	eachSchema(root, "", func(node map[string]any, at string) {
		exclusive(node, "minimum", "exclusiveMinimum")
		exclusive(node, "maximum", "exclusiveMaximum")
		if _, list := node["items"].([]any); list && (draft == "" || strings.HasSuffix(draft, "2020-12/schema")) {
			node["prefixItems"] = node["items"]
			delete(node, "items")
			if rest, there := node["additionalItems"]; there {
				node["items"] = rest
			}
		}
		if at != "" {
			delete(node, "$schema")
		}
		for _, name := range slices.Sorted(maps.Keys(node)) {
			r.keyword(node, name, at+"/"+Escape(name))
		}
		for _, name := range []string{"$ref", "$dynamicRef"} {
			if ref, ok := node[name].(string); ok && !r.resolves(ref, names) {
				delete(node, name)
				r.note(at+"/"+name, "it refers to what is not in the schema, and is not checked")
			}
		}
	})
}

// exclusive writes a bound of draft 4, whose exclusiveness is true or false, as those since.
func exclusive(node map[string]any, bound, name string) {
	yes, old := node[name].(bool)
	if !old {
		return
	}
	delete(node, name)
	if n, there := node[bound]; yes && there {
		node[name] = n
		delete(node, bound)
	}
}

// keyword removes a malformed keyword, or what is malformed in it.
func (r *repair) keyword(node map[string]any, name, at string) {
	f, v := keywords[name], node[name]
	if !f.fits(name, v) || measure(v, 1, new(int)) != nil && f == formAny {
		delete(node, name)
		if v != nil && name != "title" && name != "description" && name != "$comment" {
			r.note(at, "it is malformed, and is not checked")
		}
		return
	}
	switch v := v.(type) {
	case []any:
		switch f { //nolint:exhaustive // the others are no lists
		case formNames, formType: // each once
			node[name] = slices.CompactFunc(inOrder(v), func(a, b any) bool { return a == b })
		case formSchemaList, formSchemaOrList:
			for i, x := range v {
				r.member(x, at+"/"+strconv.Itoa(i), func(x any) { v[i] = x })
			}
		case formList:
			if measure(v, 1, new(int)) != nil {
				delete(node, name)
				r.note(at, "it is too large, and is not checked")
			}
		}
	case map[string]any:
		if f == formSchemaMap {
			for key, x := range v {
				r.member(x, at+"/"+Escape(key), func(x any) { v[key] = x })
			}
		}
	case string:
		if u, err := url.Parse(v); name == "$id" && (err != nil || u.Fragment != "" || strings.Contains(v, "#")) {
			delete(node, name)
		}
	}
}

// member replaces a member that is no schema by one that accepts everything.
func (r *repair) member(v any, at string, set func(any)) {
	if !isSchema(v) {
		set(map[string]any{})
		r.note(at, "it is no schema, and is not checked")
	}
}

// names are the references by which a schema has its own parts, apart from pointers.
func (r *repair) names() map[string]bool {
	names := map[string]bool{"#": true}
	eachSchema(r.root, "", func(node map[string]any, _ string) {
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := node[key].(string); ok {
				names["#"+name] = true
			}
		}
		if id, ok := node["$id"].(string); ok {
			names[id] = true
		}
	})
	return names
}

// resolves reports whether a reference is to a part of the schema, or to a draft.
func (r *repair) resolves(ref string, names map[string]bool) bool {
	document, pointer, _ := strings.Cut(ref, "#")
	switch {
	case names[ref], slices.Contains(drafts, document), document != "" && names[document]:
		return true
	case document != "" || !strings.HasPrefix(pointer, "/"):
		return false
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return false
	}
	var v any = r.root
	for token := range strings.SplitSeq(pointer[1:], "/") {
		switch of := v.(type) {
		case map[string]any:
			v = of[Unescape(token)]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(of) {
				return false
			}
			v = of[i]
		default:
			return false
		}
	}
	return isSchema(v)
}

// checkable compiles a mended schema without the patterns that cannot be matched.
func (r *repair) checkable(root map[string]any) *Schema {
	tree, err := Decode(plain(root))
	eachSchema(tree, "", func(node map[string]any, at string) {
		if p, ok := node["pattern"].(string); ok && !r.matchable(p, at+"/pattern") {
			delete(node, "pattern")
		}
		of, _ := node["patternProperties"].(map[string]any)
		for p := range of {
			if !r.matchable(p, at+"/patternProperties/"+Escape(p)) {
				delete(of, p)
				delete(node, "additionalProperties") // it is about the names that no pattern matches
				delete(node, "unevaluatedProperties")
			}
		}
	})
	var s *Schema
	if err == nil {
		s, err = Compile(plain(tree))
	}
	if err != nil {
		r.lost = true
		r.note("", "nothing is checked: "+visible.Line(err.Error(), maxReason))
		s, _ = Compile([]byte(`{}`)) // compiles
	}
	return s
}

func (r *repair) matchable(pattern, at string) bool {
	if _, err := newPatterns().compile(pattern); err != nil {
		r.note(at, err.Error()+", and is not checked")
		return false
	}
	return true
}

// plain is a value as JSON, with each character as it is.
func plain(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte(`{}`) // it was JSON
	}
	return bytes.TrimSpace(b.Bytes())
}
