package schemas

import (
	"strings"
	"testing"
)

func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		shape    string
		yes, bad []string
	}{
		{"string", []string{`""`}, []string{`1`, `null`}},
		{"number", []string{`1.5`, `-1`}, []string{`"1"`}},
		{"integer", []string{`3`, `3.0`}, []string{`3.5`}},
		{"boolean", []string{`true`}, []string{`0`}},
		{"null", []string{`null`}, []string{`0`}},
		{"any", []string{`null`, `{}`, `[1]`}, nil},
		{"object", []string{`{}`, `{"a":1}`}, []string{`[]`}},
		{"array", []string{`[]`, `[1,"a"]`}, []string{`{}`}},
		{"array<string>", []string{`[]`, `["a"]`}, []string{`[1]`, `"a"`}},
		{" array < array<integer> > ", []string{`[[1]]`}, []string{`[1]`}},
		{"array<{outlet_id, score, rank}>", []string{`[]`, `[{"outlet_id":"o","score":1,"rank":[]}]`}, []string{`[{"outlet_id":"o","score":1}]`, `[{"outlet_id":"o","score":1,"rank":1,"x":1}]`, `[{"outlet_id":null,"score":1,"rank":1}]`}},
		{"array<{place: string, magnitude: number}>", []string{`[{"place":"x","magnitude":7.1}]`}, []string{`[{"place":"x","magnitude":"7.1"}]`, `{"place":"x","magnitude":7.1}`}},
		{"{count: integer}", []string{`{"count":3}`}, []string{`{}`, `{"count":3.5}`, `{"count":3,"x":1}`}},
		{"{}", []string{`{}`}, []string{`{"a":1}`}},
		{"{a:{b:any}}", []string{`{"a":{"b":null}}`}, []string{`{"a":{}}`}},
		{"string|null", []string{`"a"`, `null`}, []string{`1`}},
		{"array<string|null>", []string{`["a",null]`}, []string{`[1]`}},
		{"array<(string|integer)>|null", []string{`["a",1]`, `null`}, []string{`1`}},
		{"{a: string|null, b: array<string>}", []string{`{"a":null,"b":[]}`}, []string{`{"b":[]}`}},
		{"\t{\n\"type\":\"string\"}", nil, nil},
		{`{"type":"integer","minimum":2}`, []string{`2`}, []string{`1`}},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, []string{`null`}, []string{`1`}},
	} {
		t.Run(tt.shape, func(t *testing.T) {
			source, err := CompileShape(tt.shape)
			if err != nil {
				if tt.yes == nil {
					return
				}
				t.Fatal(err)
			}
			s, err := Compile(source)
			if err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			for _, doc := range tt.yes {
				if v := s.ValidateBytes([]byte(doc)); v != nil {
					t.Errorf("%s: %v", doc, v)
				}
			}
			for _, doc := range tt.bad {
				if v := s.ValidateBytes([]byte(doc)); v == nil {
					t.Errorf("%s passes", doc)
				}
			}
		})
	}
}

func TestShapesRefused(t *testing.T) {
	for _, tt := range []struct{ shape, want string }{
		{"", "ends where a name must stand"},
		{"strnig", `no type "strnig"`},
		{"String", `no type "String"`},
		{"array<", "ends where a name must stand"},
		{"array<string", `ends where ">" must stand`},
		{"array<string>>", `unexpected ">"`},
		{"{a", `ends where "," must stand`},
		{"{a,}", `a name must stand before "}"`},
		{"{,a}", `a name must stand before ","`},
		{"{a:}", `a name must stand before "}"`},
		{"{a, a}", `member "a" stands twice`},
		{"{a b}", `"," must stand before "b"`},
		{"{ä}", `a name must stand before "ä"`},
		{"string|", "ends where a name must stand"},
		{"string number", `unexpected "n"`},
		{"(string", `ends where ")" must stand`},
		{strings.Repeat("array<", 20) + "any" + strings.Repeat(">", 20), "deeper than 16"},
		{"{" + strings.Repeat("a", 65) + "}", "a name has more than 64 characters"},
		{strings.Repeat(" ", MaxShapeSize) + "any", "more than 4096 bytes"},
		{`{"type":"strnig"}`, "shape: schema"},
		{`{"$ref":"https://example.org/x"}`, "shape: schema"},
	} {
		_, err := CompileShape(tt.shape)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("CompileShape(%.40q) = %v, want %s", tt.shape, err, tt.want)
		}
	}
}

func FuzzCompileShape(f *testing.F) {
	for _, shape := range []string{"", "array<{outlet_id, score, rank}>", "{a: string|null, b: array<(any|object)>}", `{"type":"integer"}`, "array<array<", "{a{", "\x80|"} {
		f.Add(shape)
	}
	f.Fuzz(func(t *testing.T, shape string) {
		source, err := CompileShape(shape)
		if err != nil {
			return
		}
		if _, err := Compile(source); err != nil {
			t.Errorf("CompileShape(%q) = %s, which does not compile: %v", shape, source, err)
		}
	})
}
