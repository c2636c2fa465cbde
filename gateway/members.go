package gateway

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// maxMember bounds the name of a member that a refusal points to, in bytes.
const maxMember = 64

// unknownMember finds a member of a document that the type it is decoded into
// does not have: where it stands, and what members there are.
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

// membersOf a struct by their names in JSON, those of embedded ones too.
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

// escaped is a name as a token of a JSON Pointer.
func escaped(name string) string {
	if r := []rune(name); len(r) > maxMember {
		name = string(r[:maxMember]) + "…"
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
