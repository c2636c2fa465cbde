package schemas

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompileRefuses(t *testing.T) {
	for name, source := range map[string]string{
		"not JSON":             `{`,
		"not a schema":         `{"type":"strnig"}`,
		"a number":             `7`,
		"remote ref":           `{"$ref":"https://example.org/schema.json"}`,
		"file ref":             `{"$ref":"file:///etc/hostname"}`,
		"our own document":     `{"$ref":"https://aob.dev/schemas/envelope.json"}`,
		"missing ref":          `{"$ref":"#/$defs/none"}`,
		"unknown metaschema":   `{"$schema":"https://example.org/meta.json"}`,
		"bad pattern":          `{"pattern":"("}`,
		"too large":            `{"title":"` + strings.Repeat("x", MaxForeignSize) + `"}`,
		"too deep":             strings.Repeat(`{"not":`, MaxForeignDepth) + `{}` + strings.Repeat(`}`, MaxForeignDepth),
		"too many nodes":       `{"allOf":[` + strings.Repeat(`{},`, MaxForeignNodes) + `{}]}`,
		"long pattern":         `{"pattern":"` + strings.Repeat("a", maxPattern+1) + `"}`,
		"number to write out":  `{"minimum":1e999999}`,
		"pattern that unfolds": `{"pattern":"` + strings.Repeat("a{1000}", 20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := Compile([]byte(source)); err == nil {
				t.Errorf("compiled to %s", s.ID())
			}
		})
	}
}

func TestCompileValidates(t *testing.T) {
	for _, tt := range []struct {
		name, source, doc string
		want              []Violation
	}{
		{"true", `true`, `7`, nil},
		{"false", `false`, `7`, []Violation{{"", "is not allowed"}}},
		{"members", `{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"required":["a"]}`, `{"a":0}`, []Violation{{"/a", "must be at least 1"}}},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"items":{"$ref":"#/definitions/a"}}`, `[1]`, []Violation{{"/0", "must be string"}}},
		{"format is an annotation", `{"type":"string","format":"date"}`, `"soon"`, nil},
		{"recursive", `{"$defs":{"tree":{"type":"object","properties":{"left":{"$ref":"#/$defs/tree"}},"additionalProperties":false}},"$ref":"#/$defs/tree"}`, `{"left":{"left":{"right":1}}}`, []Violation{{"/left/left/right", "unknown member"}}},
		{"endless ref", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, `1`, []Violation{{"", "is not valid"}}},
		{"pattern", `{"patternProperties":{"^x":{"type":"null"}}}`, `{"x1":1,"y":1}`, []Violation{{"/x1", "must be null"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Compile([]byte(tt.source))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.ValidateBytes([]byte(tt.doc))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if string(s.Source()) != tt.source || !strings.HasPrefix(s.ID(), "sha256:") {
				t.Errorf("source %s, id %s", s.Source(), s.ID())
			}
			again, err := Compile([]byte(tt.source))
			if err != nil || again != s {
				t.Errorf("not cached: %v", err)
			}
		})
	}
}

// TestValidationIsBounded: schemas of a few hundred bytes that would take very long.
func TestValidationIsBounded(t *testing.T) {
	doubling := `{"$defs":{"n0":{"type":"null"}`
	for i := range 40 {
		doubling += fmt.Sprintf(`,"n%d":{"allOf":[{"$ref":"#/$defs/n%d"},{"$ref":"#/$defs/n%d"}]}`, i+1, i, i)
	}
	deep := strings.Repeat(`{"a":`, 200) + `1` + strings.Repeat(`}`, 200)
	for _, tt := range []struct{ name, source, doc string }{
		{"doubling refs", doubling + `},"$ref":"#/$defs/n40"}`, `null`},
		{"doubling under not", doubling + `},"not":{"$ref":"#/$defs/n40"}}`, `null`},
		{"doubling members", `{"$defs":{"n":{"type":["object","null"],"properties":{"a":{"$ref":"#/$defs/n"}},"patternProperties":{"a":{"$ref":"#/$defs/n"}}}},"not":{"$ref":"#/$defs/n"}}`, deep},
		{"doubling in draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"properties":{"a":{"$ref":"#/definitions/n"}},"patternProperties":{"a":{"$ref":"#/definitions/n"}}}},"allOf":[{"$ref":"#/definitions/n"}]}`, deep},
		{"long enum", `{"items":{"enum":[` + strings.Repeat("1,", 30_000) + `2]}}`, `[` + strings.Repeat("3,", 20_000) + `3]`},
		{"large pattern", `{"items":{"pattern":"^(.{0,999}x){1}$"}}`, `[` + strings.Repeat(`"`+strings.Repeat("y", 2000)+`",`, 1000) + `""]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Compile([]byte(tt.source))
			if err != nil {
				t.Fatal(err)
			}
			got := s.ValidateBytes([]byte(tt.doc))
			if diff := cmp.Diff([]Violation{{"", "takes too much work to check"}}, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrdinaryDataIsWithinBudget(t *testing.T) {
	s, err := Compile([]byte(`{"type":"array","items":{"type":"object","properties":{"place":{"type":"string","pattern":"^[A-Za-z0-9 ]+$"},"kind":{"enum":["a","b","c","d"]},"magnitude":{"type":"number","minimum":-2}},"required":["place"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	doc := `[` + strings.Repeat(`{"place":"12 km E of Somewhere","kind":"d","magnitude":4.5},`, 20_000) + `{"place":"x"}]`
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if v := s.ValidateBytes([]byte(doc)); v != nil {
				t.Error(v)
			}
		})
	}
	wg.Wait()
}

// TestUnionsAreWithinBudget: the charge is the work that a document causes, not what its schema
// permits. Of three levels of unions a value meets the branches of its own kind; all paths
// through them are 4,096, which for each value would exceed what any document may take.
func TestUnionsAreWithinBudget(t *testing.T) {
	union := func(level int, below string) string {
		kinds := make([]string, 16)
		for i := range kinds {
			kinds[i] = fmt.Sprintf(`{"type":"object","properties":{"kind":{"const":"k%d"},"of%d_%d":%s},"required":["kind"],"additionalProperties":false}`, i, level, i, below)
		}
		return `{"anyOf":[` + strings.Join(kinds, ",") + `]}`
	}
	s, err := Compile([]byte(`{"$defs":{"a":` + union(1, `{"$ref":"#/$defs/b"}`) + `,"b":` + union(2, `{"type":"integer"}`) + `},"items":` + union(0, `{"$ref":"#/$defs/a"}`) + `}`))
	if err != nil {
		t.Fatal(err)
	}
	doc := `[` + many(200, `{"kind":"k15","of0_15":{"kind":"k14","of1_14":{"kind":"k15","of2_15":7}}}`) + `]`
	if v := s.ValidateBytes([]byte(doc)); v != nil {
		t.Error(v)
	}
}

func TestCacheIsBounded(t *testing.T) {
	for i := range cached + 10 {
		if _, err := Compile(fmt.Appendf(nil, `{"const":%d}`, i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := foreign.Len(); n != cached {
		t.Errorf("%d schemas", n)
	}
}

func FuzzCompile(f *testing.F) {
	for _, id := range IDs() {
		s, err := Lookup(id)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(s.Source()), []byte(valid))
	}
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-04/schema#","id":"#a","$ref":"#a"}`), []byte(`[1e9,{"a":null}]`))
	f.Add([]byte(`{"$id":"x","$anchor":"a","$dynamicAnchor":"b","$dynamicRef":"#b","unevaluatedItems":{"$ref":"x#a"}}`), []byte(`[[[]]]`))
	f.Fuzz(func(t *testing.T, source, doc []byte) {
		s, err := Compile(source)
		if err != nil {
			return
		}
		for _, v := range s.ValidateBytes(doc) {
			if v.Reason == "" || v.Pointer != "" && v.Pointer[0] != '/' {
				t.Errorf("violation %q", v)
			}
		}
	})
}
