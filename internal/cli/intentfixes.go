package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// fix is the advice about a violation of a schema. The wording of the reason identifies the keyword
// (package schemas).
func fix(shape *schemas.Schema, pointer, reason string, doc any) string {
	parent, name := cutPointer(pointer)
	switch {
	case reason == schemas.UnknownMember:
		known := shape.Part(parent).Members()
		if m := didYouMean(name, known); m != "" {
			return "rename it" + m
		}
		if len(known) == 0 {
			return "remove it"
		}
		return "remove it; the members here are " + strings.Join(known, ", ")
	case strings.HasPrefix(reason, "is required"):
		return "add " + quoted(name) + ": " + example(shape, pointer)
	case strings.HasPrefix(reason, "must be one of "):
		if given, ok := valueAt(doc, pointer).(string); ok {
			if m := didYouMean(given, shape.Part(pointer).Texts()); m != "" {
				return "change it" + m
			}
		}
		return "use one of " + strings.TrimPrefix(reason, "must be one of ")
	case strings.HasPrefix(reason, "must match ") || strings.HasPrefix(reason, "must be in format "):
		return "write it like " + example(shape, pointer)
	case strings.HasPrefix(reason, "must have at most ") && strings.HasSuffix(reason, "characters"):
		return `shorten it, or send the data by reference: a member "from" of args`
	case strings.HasPrefix(reason, "must have exactly one of the members "):
		return "give one of " + strings.TrimPrefix(reason, "must have exactly one of the members ") + " and leave out the others"
	case reason == "has a form that is not allowed":
		return "leave out members that exclude each other: see the type's schema in docs/catalog.md"
	case strings.HasPrefix(reason, "must be "), strings.HasPrefix(reason, "must have "):
		return "change it: it " + reason
	}
	return "see the type's schema in GET /v1/catalog"
}

// examples are values of members whose pattern is hard to read.
var examples = map[string]func() string{
	"issued_at":       func() string { return intents.FormatTime(time.Now()) },
	"trace_id":        func() string { return strings.Repeat("0a", 16) },
	"idempotency_key": func() string { return "rnd_" + strings.Repeat("0a", 16) },
	"audience":        func() string { return "writ/<root thumbprint>, the origin in /.well-known/jwks.json" },
	"digest":          func() string { return intents.Digest(nil) },
	"hash":            func() string { return intents.Digest(nil) },
	"intent_id":       func() string { return intents.Digest(nil) },
	"capabilities":    func() string { return "skills:call" },
	"grant":           func() string { return "<header>.<claims>.<signature>" },
	"user_id":         func() string { return "u_123" },
	"tenant":          func() string { return "default" },
}

// example is a possible value of a member, as JSON.
func example(shape *schemas.Schema, pointer string) string {
	parent, name := cutPointer(pointer)
	if strings.Trim(name, "0123456789") == "" { // an item: of its list
		_, name = cutPointer(parent)
	}
	if e, ok := examples[name]; ok {
		return quoted(e())
	}
	raw, err := json.Marshal(shape.Part(pointer).Example())
	if err != nil || string(raw) == `""` {
		return quoted("an-identifier_1")
	}
	return string(raw)
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

func cutPointer(pointer string) (parent, name string) {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return "", ""
	}
	return pointer[:i], schemas.Unescape(pointer[i+1:])
}

func valueAt(doc any, pointer string) any {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		object, ok := doc.(map[string]any)
		if !ok {
			return nil
		}
		doc = object[token]
	}
	return doc
}

// didYouMean is ": did you mean …?" with the nearest name, if one is near.
func didYouMean(name string, known []string) string {
	near := schemas.Nearest(name, known)
	if near == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", near)
}

// canonicalObject is the canonical form of a JSON object.
func canonicalObject(raw json.RawMessage) (json.RawMessage, error) {
	canonical, err := intents.Canonical(raw)
	if err != nil {
		return nil, err
	}
	if len(canonical) == 0 || canonical[0] != '{' {
		return nil, errors.New("must be a JSON object")
	}
	return canonical, nil
}
