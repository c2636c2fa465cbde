package intents

import (
	"encoding/json"
	"testing"
)

func TestMask(t *testing.T) {
	const value = `{"a":{"b/c":[1,12345678901234567890]},"d":"<x>"}`
	for _, c := range []struct {
		name, value, want string
		pointers          []string
	}{
		{"nothing", value, value, nil},
		{"a member", value, `{"a":{"b/c":[1,12345678901234567890]},"d":"[masked]"}`, []string{"/d"}},
		{"an element", value, `{"a":{"b/c":["[masked]",12345678901234567890]},"d":"<x>"}`, []string{"/a/b~1c/0"}},
		{"all elements", value, `{"a":{"b/c":["[masked]","[masked]"]},"d":"<x>"}`, []string{"/a/*/*"}},
		{"what is not there", value, value, []string{"/x/y", "/a/b~1c/7"}},
		{"the whole", value, `"[masked]"`, []string{"/d", ""}},
		{"no pointer", value, `"[masked]"`, []string{"d"}},
		{"no pointer, of two names", value, `"[masked]"`, []string{"a/d"}},
		{"no JSON", `{"a":`, `"[masked]"`, []string{"/a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Mask(json.RawMessage(c.value), c.pointers); string(got) != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
		})
	}
}
