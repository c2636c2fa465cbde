package gateway

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
)

// maxMember bounds a member name in a refusal's pointer, in bytes.
const maxMember = 64

// unknownMember finds a member of a document that does not exist in the type it is decoded into:
// its position, and the existing members.
func unknownMember(t reflect.Type, doc json.RawMessage, at string) (pointer, known string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var members map[string]json.RawMessage
	if t.Kind() != reflect.Struct || json.Unmarshal(doc, &members) != nil {
		return "", ""
	}
	fields := membersOf(t)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		here := at + "/" + escaped(name)
		of, ok := fields[name]
		if !ok {
			return here, strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
		}
		if pointer, known = unknownMember(of, members[name], here); pointer != "" {
			return pointer, known
		}
	}
	return "", ""
}

// membersOf returns the members of a struct by their names in JSON, including embedded ones.
func membersOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			out[name] = f.Type
		}
	}
	return out
}

// escaped returns a name as a token of a JSON Pointer.
func escaped(name string) string {
	return schemas.Escape(visible.Cut(name, maxMember))
}
