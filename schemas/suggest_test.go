package schemas

import (
	"strings"
	"testing"
)

// TestNearest: misspelt names are found, short or unrelated ones are not.
func TestNearest(t *testing.T) {
	names := []string{"approval", "once", "python", "skills_allow", "max_steps", "plans:read"}
	for word, want := range map[string]string{
		"aproval": "approval", "onse": "once", "ONCE": "once", "onec": "once", "pyhton": "python", "skill_allow": "skills_allow", "maxsteps": "max_steps",
		"plan:raed": "plans:read", "zebra": "", "": "", "x": "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%q is taken for %q, want %q", word, got, want)
		}
	}
}

// TestMembers lists the allowed members of an object if a member is unknown.
func TestMembers(t *testing.T) {
	s, err := Lookup(Base + "tenant_data.json")
	if err != nil {
		t.Fatal(err)
	}
	for pointer, want := range map[string]string{"/aproval": "approval", "/approval/onse": "once", "/ttl_max/x": "", "/no/such": ""} {
		word := pointer[1:]
		if pointer == "/approval/onse" {
			word = "onse"
		}
		if got := Nearest(word, s.Part(pointer[:strings.LastIndexByte(pointer, '/')]).Members()); got != want {
			t.Errorf("%s: %q, want %q", pointer, got, want)
		}
	}
}
