package intents

import (
	"encoding/json"
	"reflect"
	"strings"
)

// exactNames says whether the members of a JSON text that was decoded into type
// t have exactly the names of its fields: encoding/json also takes a name that
// differs in case, which would give one claim several names.
func exactNames(text []byte, t reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // nothing else holds fields
	case reflect.Pointer:
		return exactNames(text, t.Elem())
	case reflect.Struct:
		if reflect.PointerTo(t).Implements(unmarshaler) {
			return true // it reads itself, as time.Time does
		}
		return exactMembers(text, memberTypes(t))
	case reflect.Slice, reflect.Array:
		var list []json.RawMessage
		if t.Elem().Kind() == reflect.Uint8 || json.Unmarshal(text, &list) != nil {
			return true // bytes, in base64 or as they are
		}
		for _, v := range list {
			if !exactNames(v, t.Elem()) {
				return false
			}
		}
	}
	return true
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func exactMembers(text []byte, types map[string]reflect.Type) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return false
	}
	for name, v := range members {
		if t, ok := types[name]; !ok || !exactNames(v, t) {
			return false
		}
	}
	return true
}

// memberTypes of a struct, by the names of its tags.
func memberTypes(t reflect.Type) map[string]reflect.Type {
	types := make(map[string]reflect.Type, t.NumField())
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			types[name] = f.Type
		}
	}
	return types
}
