package catalog

import (
	"encoding/json"
	"reflect"
	"testing"

	"aob.dev/writ/intents"
)

// FuzzArgs: whatever a type's schema lets through in canonical form, an executor
// can read into the type's Go type, and no violation is without pointer and reason.
func FuzzArgs(f *testing.F) {
	for i, r := range Builtin().Rows() {
		for _, v := range examples[r.Type].args {
			raw, err := json.Marshal(v)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), raw)
		}
	}
	f.Fuzz(func(t *testing.T, index uint8, text []byte) {
		row := Builtin().Rows()[int(index)%len(Builtin().Rows())]
		args, err := intents.Canonical(text)
		if err != nil {
			return
		}
		s, err := row.ArgsSchema()
		if err != nil {
			t.Fatal(err)
		}
		if violations := s.ValidateBytes(args); len(violations) > 0 {
			for _, v := range violations {
				if v.Reason == "" || v.Pointer != "" && v.Pointer[0] != '/' {
					t.Errorf("%s: violation %+v of %s", row.Type, v, args)
				}
			}
			return
		}
		if err := intents.UnmarshalStrict(args, reflect.New(reflect.TypeOf(examples[row.Type].args[0])).Interface()); err != nil {
			t.Errorf("%s takes %s: %v", row.Type, args, err)
		}
	})
}
