package schemas

import (
	"bytes"
	"strings"
	"testing"
)

// TestBundle: every document of this package, bundled, compiles without any other.
func TestBundle(t *testing.T) {
	referring := 0
	for _, id := range IDs() {
		s, err := Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := Bundle(s.Source())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compile(whole); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if !bytes.Equal(whole, s.Source()) {
			referring++
		}
		again, err := Bundle(whole)
		if err != nil || !bytes.Equal(whole, again) {
			t.Errorf("%s: bundled twice it is another one: %v", id, err)
		}
	}
	if referring == 0 {
		t.Error("no document refers to another one")
	}
}

// TestBundledDecides: a bundled schema refuses what the schema itself refuses.
func TestBundledDecides(t *testing.T) {
	s, err := IntentArgs("plan")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Bundle(s.Source())
	if err != nil {
		t.Fatal(err)
	}
	bundled, err := Compile(whole)
	if err != nil {
		t.Fatal(err)
	}
	good := `{"plan_id":"p","epoch":1,"revision":1,"steps":[{"step":1,"task":"x","skills":[],"return_spec":{"shape":"string","reason":"x"}}]}`
	for _, doc := range []string{good, strings.Replace(good, `"step":1`, `"step":0`, 1), strings.Replace(good, `"shape"`, `"form"`, 1)} {
		a, b := s.ValidateBytes([]byte(doc)), bundled.ValidateBytes([]byte(doc))
		if len(a) != len(b) || (doc == good) != (len(a) == 0) {
			t.Errorf("%s: %v, bundled %v", doc, a, b)
		}
	}
}

func TestBundleOfOthers(t *testing.T) {
	for _, text := range []string{`{"type":"object"}`, `{"$ref":"https://example.org/x.json"}`, `{"$ref":"%zz"}`, `true`, `[`} {
		if got, err := Bundle([]byte(text)); err != nil || string(got) != text {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
