package schemas

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestTolerate: each odd schema checks what can be checked, shows models one that is well-formed, and
// notes what is not checked.
func TestTolerate(t *testing.T) {
	for name, tt := range map[string]struct {
		schema, good, bad string // bad: a value that it refuses; empty: none is tried
		note              string // empty: there is none
		shown             string // a part of it
	}{
		"well-formed":                 {`{"type":"object","required":["a"]}`, `{"a":1}`, `{}`, "", `{"type":"object","required":["a"]}`},
		"nothing":                     {`{}`, `{"a":1}`, "", "", `{}`},
		"true":                        {`true`, `{"a":1}`, "", "", `{}`},
		"no schema":                   {`7`, `{"a":1}`, "", "no schema", `{}`},
		"no JSON":                     {``, `{"a":1}`, "", "no schema", `{}`},
		"lookahead":                   {`{"properties":{"to":{"type":"string","pattern":"^(?!\\.)[^@]+@.+$"}}}`, `{"to":".x@y"}`, `{"to":7}`, "/properties/to/pattern: ", `(?!`},
		"lookahead of a name":         {`{"patternProperties":{"^(?!a)":{"type":"string"},"^n":{"type":"number"}},"additionalProperties":false}`, `{"b":1}`, `{"n":"1"}`, "/patternProperties/^(?!a)", `additionalProperties`},
		"backreference":               {`{"pattern":"(a)\\1"}`, `"x"`, "", "/pattern: ", ""},
		"code points":                 {`{"pattern":"^\\u0041\\u{42}\\\\u0043\\Z"}`, `"AB\\u0043"`, `"ABC"`, "", ""},
		"too long a pattern":          {`{"pattern":"` + strings.Repeat("a", maxPattern+1) + `"}`, `"x"`, "", "too long", ""},
		"a draft 4 bound":             {`{"properties":{"n":{"minimum":0,"exclusiveMinimum":true}}}`, `{"n":1}`, `{"n":0}`, "", `"exclusiveMinimum":0`},
		"no draft 4 bound":            {`{"properties":{"n":{"maximum":9,"exclusiveMaximum":false}}}`, `{"n":9}`, `{"n":10}`, "", `"maximum":9`},
		"a bound of draft 4 itself":   {`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"n":{"maximum":9,"exclusiveMaximum":true}}}`, `{"n":8}`, `{"n":9}`, "", `"exclusiveMaximum":9`},
		"unknown $schema":             {`{"$schema":"https://example.com/mine","required":["a"]}`, `{"a":1}`, `{}`, "", `required`},
		"$schema that is none":        {`{"$schema":7,"required":["a"]}`, `{"a":1}`, `{}`, "", `required`},
		"$schema further in":          {`{"properties":{"a":{"$schema":"x:y","type":"string"}}}`, `{"a":""}`, `{"a":1}`, "", ``},
		"items of older drafts":       {`{"items":[{"type":"string"}],"additionalItems":{"type":"number"}}`, `["",1]`, `[1]`, "", `prefixItems`},
		"required of draft 3":         {`{"properties":{"a":{"required":true,"type":"string"}}}`, `{"a":""}`, `{"a":1}`, "/properties/a/required", ``},
		"required twice":              {`{"required":["a","a"]}`, `{"a":1}`, `{}`, "", ``},
		"type any":                    {`{"properties":{"a":{"type":"any"},"b":{"type":"string"}}}`, `{"a":1}`, `{"b":1}`, "/properties/a/type", ``},
		"a reference elsewhere":       {`{"properties":{"a":{"$ref":"https://example.com/s.json"},"b":{"$ref":"file:///etc/passwd"},"c":{"type":"string"}}}`, `{"a":1}`, `{"c":1}`, "$ref: it refers to what is not", ``},
		"a reference to nothing":      {`{"properties":{"a":{"$ref":"#/components/schemas/A"},"c":{"type":"string"}}}`, `{"a":1}`, `{"c":1}`, "/properties/a/$ref", ``},
		"a reference to an anchor":    {`{"$schema":"x:y","properties":{"a":{"$ref":"#b"}},"$defs":{"b":{"$anchor":"b","type":"string"}}}`, `{"a":""}`, `{"a":1}`, "", ``},
		"a reference to an $id":       {`{"$schema":"x:y","$id":"https://example.com/s","properties":{"a":{"$ref":"https://example.com/s#/$defs/b"}},"$defs":{"b":{"type":"string"}}}`, `{"a":""}`, `{"a":1}`, "", ``},
		"a reference to itself":       {`{"$schema":"x:y","properties":{"a":{"$ref":"#"},"b":{"type":"string"}}}`, `{"a":{"b":""}}`, `{"a":{"b":1}}`, "", ``},
		"a reference with escapes":    {`{"$schema":"x:y","properties":{"a":{"$ref":"#/%24defs/b~1c"}},"$defs":{"b/c":{"type":"string"}}}`, `{"a":""}`, `{"a":1}`, "", ``},
		"anyOf at the root":           {`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":1}`, `{}`, "", ``},
		"anyOf of nothing":            {`{"anyOf":[],"required":["a"]}`, `{"a":1}`, `{}`, "/anyOf", ``},
		"anyOf with what is none":     {`{"anyOf":["string",{"required":["a"]}]}`, `{}`, "", "/anyOf/0: it is no schema", ``},
		"a property that is none":     {`{"properties":{"a":"string"},"additionalProperties":false}`, `{"a":1}`, `{"b":1}`, "/properties/a: it is no schema", ``},
		"64 bits":                     {`{"properties":{"n":{"type":"integer","maximum":9223372036854775807}}}`, `{"n":9223372036854775807}`, `{"n":9223372036854775808}`, "", `9223372036854775807`},
		"a number out of range":       {`{"properties":{"n":{"maximum":1e999999,"type":"number"}}}`, `{"n":1}`, `{"n":""}`, "/properties/n/maximum", ``},
		"a default out of range":      {`{"properties":{"n":{"default":1e999999,"type":"number"}}}`, `{"n":1}`, `{"n":""}`, "/properties/n/default", ``},
		"a count that is none":        {`{"properties":{"n":{"maxLength":-1,"minLength":"3","type":"string"}}}`, `{"n":""}`, `{"n":1}`, "/properties/n/maxLength", ``},
		"null for keywords":           {`{"properties":null,"description":null,"required":["a"]}`, `{"a":1}`, `{}`, "", ``},
		"flags as texts":              {`{"additionalProperties":"false","properties":{"a":{"uniqueItems":"yes","type":"array"}}}`, `{"a":[1,1]}`, `{"a":1}`, "/additionalProperties", ``},
		"too many":                    {`{"properties":{` + strings.Repeat(`"a":{},`, 5000) + `"b":` + strings.Repeat(`{"not":`, 70) + `{}` + strings.Repeat(`}`, 70) + `}}`, `{"b":1}`, "", "nothing is checked", ``},
		"data that looks like schema": {`{"$schema":"x:y","default":{"$ref":"https://example.com","type":"objekt"},"required":["a"]}`, `{"a":1}`, `{}`, "", `objekt`},
		"members named as keywords":   {`{"$schema":"x:y","properties":{"type":{"type":"string"},"$ref":{"type":"string"},"enum":{"type":"string"}}}`, `{"type":"","$ref":"x"}`, `{"$ref":1}`, "", ``},
	} {
		got := Tolerate([]byte(tt.schema))
		notes := strings.Join(got.Notes, "\n")
		if tt.note == "" && notes != "" || !strings.Contains(notes, tt.note) {
			t.Errorf("%s: notes %q", name, notes)
		}
		if v := got.ValidateBytes([]byte(tt.good)); len(v) > 0 {
			t.Errorf("%s refuses %s: %v", name, tt.good, v)
		}
		if tt.bad != "" && len(got.ValidateBytes([]byte(tt.bad))) == 0 {
			t.Errorf("%s accepts %s", name, tt.bad)
		}
		if !strings.Contains(string(got.Shown), tt.shown) || !json.Valid(got.Shown) {
			t.Errorf("%s shows %s", name, got.Shown)
		}
		again := Tolerate(got.Shown)
		again.Notes = slices.DeleteFunc(slices.Clone(again.Notes), func(n string) bool { return strings.Contains(n, "attern") })
		if len(again.Notes) > 0 {
			t.Errorf("%s shows what is odd: %s: %v", name, got.Shown, again.Notes)
		}
	}
}

// TestShown: long texts of others are cut for models, what is cut is noted, and hidden characters of
// texts are visible. Their checks are those of the whole schema.
func TestShown(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	values := `"` + strings.Join(strings.Fields(strings.Repeat("value-of-an-enum ", 500)), `","`) + `"`
	got := Tolerate([]byte(`{"properties":{"a":{"description":"` + long + `","default":"` + long + `","enum":[` + values + `]},"b":{"title":"x\u202ey","enum":["p\u202eq"]}}}`))
	if len(got.Shown) > 4000 || len(got.Notes) != 2 {
		t.Errorf("%d bytes, %q", len(got.Shown), got.Notes)
	}
	for _, part := range []string{`x<U+202E>y`, `p\u202eq`, `One of 500 values, such as`} {
		if !strings.Contains(string(got.Shown), part) {
			t.Errorf("no %s in %s", part, got.Shown)
		}
	}
	if len(got.ValidateBytes([]byte(`{"a":"other"}`))) == 0 {
		t.Error("an enum that is not shown is not checked")
	}
	huge := Tolerate([]byte(`{"properties":{` + strings.Repeat(`"n`+long+`":{"type":"string"},`, 1) + `"m":{"type":"string","anyOf":[` + strings.Repeat(`{"description":"`+long[:900]+`"},`, 100) + `{}]}}}`))
	if len(huge.Shown) > maxShown || !strings.Contains(string(huge.Shown), `"m":{"type":"string"}`) || len(huge.Notes) != 1 {
		t.Errorf("%d bytes, %q", len(huge.Shown), huge.Notes)
	}
}
