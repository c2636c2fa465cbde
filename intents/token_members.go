package intents

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// complete returns why a JSON text, which was decoded into type t, does not have the exact
// claims of that type: a member whose name is not exactly a field's, one that is
// missing although it is always written, or one that is null. encoding/json
// accepts all three, which would allow several names for one claim, and claims that nobody made.
//
// An empty list may be null: gateways wrote it so, and what they issued is in logs.
func complete(text []byte, t reflect.Type, at string) error {
	switch t.Kind() { //nolint:exhaustive // nothing else holds fields
	case reflect.Pointer:
		return complete(text, t.Elem(), at)
	case reflect.Struct:
		if reflect.PointerTo(t).Implements(unmarshaler) {
			return nil // it reads itself, as time.Time does
		}
		return completeMembers(text, membersOf(t), at)
	case reflect.Slice, reflect.Array:
		var list []json.RawMessage
		if isBytes(t) || json.Unmarshal(text, &list) != nil {
			return nil //nolint:nilerr // bytes, in base64 or as they are
		}
		for i, v := range list {
			if err := completeMember(v, t.Elem(), fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

func completeMembers(text []byte, members map[string]claim, at string) error {
	var said map[string]json.RawMessage
	if json.Unmarshal(text, &said) != nil || said == nil {
		return fmt.Errorf("%s is no object", at)
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		m, ok := members[name]
		if !ok {
			return fmt.Errorf("%s/%s: a name differs in case", at, name)
		}
		if err := completeMember(said[name], m.typ, at+"/"+name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if _, ok := said[name]; !ok && members[name].required {
			return fmt.Errorf("%s/%s is missing", at, name)
		}
	}
	return nil
}

func completeMember(v json.RawMessage, t reflect.Type, at string) error {
	list := t.Kind() == reflect.Slice && !isBytes(t)
	if string(v) == "null" && !list && t.Kind() != reflect.Interface {
		return fmt.Errorf("%s is null", at)
	}
	return complete(v, t, at)
}

// claim is a member of a struct: one that is always written is required.
type claim struct {
	typ      reflect.Type
	required bool
}

// membersOf a struct, by the names of its tags.
func membersOf(t reflect.Type) map[string]claim {
	members := make(map[string]claim, t.NumField())
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" {
			members[name] = claim{f.Type, !strings.Contains(options, "omitempty")}
		}
	}
	return members
}
