package schemas

import (
	"io/fs"
	"path"
	"strings"
	"testing"
)

// TestExamples: the arguments of each of our types have an example, which their schema accepts.
func TestExamples(t *testing.T) {
	names, err := fs.Glob(files, "intents/*.json")
	if err != nil {
		t.Fatal(err)
	}
	types := 0
	for _, name := range names {
		typ := strings.TrimSuffix(path.Base(name), ".json")
		if strings.HasSuffix(typ, ".result") {
			continue
		}
		types++
		s, err := IntentArgs(typ)
		if err != nil {
			t.Fatal(err)
		}
		if examples()[typ] == nil {
			t.Errorf("%s has no example", typ)
		}
		raw, err := s.Example(typ)
		if found := s.ValidateBytes(raw); err != nil || len(found) > 0 {
			t.Errorf("%s: %s: %v %v", typ, raw, found, err)
		}
	}
	if len(examples()) != types {
		t.Errorf("%d examples of %d types", len(examples()), types)
	}
}

// TestForeignExample: a vendor's type has the example that its schema gives.
func TestForeignExample(t *testing.T) {
	for source, want := range map[string]string{
		`{"type":"object","examples":[{"a":1},{"a":2}]}`:                                     `{"a":1}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","examples":[{"text":"hello"}]}}}`: `{"text":"hello"}`,
		`{"type":"object"}`: `{}`,
	} {
		s, err := Compile([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := s.Example("x.acme.echo"); err != nil || string(raw) != want {
			t.Errorf("%s: %s %v", source, raw, err)
		}
	}
}
