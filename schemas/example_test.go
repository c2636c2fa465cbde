package schemas

import (
	"encoding/json"
	"testing"
)

// TestExample: an example is valid, whatever its schema is made of.
func TestExample(t *testing.T) {
	for source, want := range map[string]string{
		`{"type":"object","required":["n","s"],"properties":{"n":{"type":"integer","minimum":3},"s":{"pattern":"^[a-z]{2}-[0-9]+$","type":"string"}}}`: `{"n":3,"s":"xx-0"}`,
		`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"enum":["x","y"]},"b":{}}}`:                               `{"a":"x"}`,
		`{"type":"object","required":["a"],"properties":{"a":{"const":1},"b":{"type":["string","null"],"minLength":2}},
		  "if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]}}`: `{"a":1,"b":"xx"}`,
		`{"$ref":"#/$defs/list","$defs":{"list":{"type":"array","minItems":1,"items":{"type":"boolean"}}}}`:        `[false]`,
		`{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","required":["t"],"properties":{"t":{"const":"end"}}}}}`: `{"t":"end"}`,
	} {
		s, err := Compile([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(s.Part("").Example())
		if err != nil || string(raw) != want || len(s.ValidateBytes(raw)) > 0 {
			t.Errorf("%s: %s %v %v", source, raw, s.ValidateBytes(raw), err)
		}
	}
	loop, err := Compile([]byte(`{"type":"object","required":["t"],"properties":{"t":{"$ref":"#"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(loop.Part("/t/t/t").Example()); err != nil {
		t.Error(err)
	}
}
