package intents_test

import (
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// TestParseBatch: envelopes come out as the bytes that went in, whatever they are.
func TestParseBatch(t *testing.T) {
	got, err := intents.ParseBatch([]byte(`{"intents": [ {"a" : 1.0, "a":2}, 7 ], "atomic":true}`))
	if err != nil || len(got) != 2 || string(got[0]) != `{"a" : 1.0, "a":2}` || string(got[1]) != `7` {
		t.Errorf("%q, %v", got, err)
	}
	for _, c := range []struct {
		name, raw, pointer string
		code               intents.Code
	}{
		{"empty", ``, "", intents.SchemaInvalid},
		{"no object", `[]`, "", intents.SchemaInvalid},
		{"cut", `{"atomic":true,"intents":[{}`, "", intents.SchemaInvalid},
		{"cut in an intent", `{"atomic":true,"intents":[{`, "", intents.SchemaInvalid},
		{"more than one", `{"atomic":true,"intents":[{}]}{}`, "", intents.SchemaInvalid},
		{"not atomic", `{"intents":[{}]}`, "/atomic", intents.SchemaInvalid},
		{"atomic false", `{"atomic":false,"intents":[{}]}`, "/atomic", intents.SchemaInvalid},
		{"atomic text", `{"atomic":"true","intents":[{}]}`, "/atomic", intents.SchemaInvalid},
		{"atomic object", `{"atomic":{},"intents":[{}]}`, "", intents.SchemaInvalid},
		{"no intents", `{"atomic":true}`, "/intents", intents.SchemaInvalid},
		{"no intent", `{"atomic":true,"intents":[]}`, "/intents", intents.SchemaInvalid},
		{"no array", `{"atomic":true,"intents":{}}`, "/intents", intents.SchemaInvalid},
		{"unknown member", `{"atomic":true,"intents":[{}],"stop":1}`, "", intents.SchemaInvalid},
		{"intents twice", `{"atomic":true,"intents":[{}],"intents":[{}]}`, "", intents.SchemaInvalid},
		{"other case", `{"atomic":true,"Intents":[{}]}`, "", intents.SchemaInvalid},
		{"101 intents", `{"atomic":true,"intents":[1` + strings.Repeat(",1", 100) + `]}`, "/intents", intents.PayloadTooLarge},
		{"too large", `{"atomic":true,"intents":[{}]}` + strings.Repeat(" ", intents.MaxBatchSize), "", intents.PayloadTooLarge},
	} {
		_, err := intents.ParseBatch([]byte(c.raw))
		want := intents.Refuse(c.code, c.pointer, "")
		if got, ok := err.(*intents.Refusal); !ok || got.Code != want.Code || got.Pointer != want.Pointer { //nolint:errorlint // it is the refusal itself
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
