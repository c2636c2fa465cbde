package intents_test

import (
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// TestParseBatch: envelopes come out as the bytes that went in, whatever they are.
func TestParseBatch(t *testing.T) {
	got, err := intents.ParseBatch([]byte(`{"orders": [ {"a" : 1.0, "a":2}, 7 ], "atomic":true}`))
	if err != nil || len(got) != 2 || string(got[0]) != `{"a" : 1.0, "a":2}` || string(got[1]) != `7` {
		t.Errorf("%q, %v", got, err)
	}
	for _, c := range []struct {
		name, raw, pointer string
		code               intents.Code
	}{
		{"empty", ``, "", intents.SchemaInvalid},
		{"no object", `[]`, "", intents.SchemaInvalid},
		{"cut", `{"atomic":true,"orders":[{}`, "", intents.SchemaInvalid},
		{"cut in an order", `{"atomic":true,"orders":[{`, "", intents.SchemaInvalid},
		{"more than one", `{"atomic":true,"orders":[{}]}{}`, "", intents.SchemaInvalid},
		{"not atomic", `{"orders":[{}]}`, "/atomic", intents.SchemaInvalid},
		{"atomic false", `{"atomic":false,"orders":[{}]}`, "/atomic", intents.SchemaInvalid},
		{"atomic text", `{"atomic":"true","orders":[{}]}`, "/atomic", intents.SchemaInvalid},
		{"atomic object", `{"atomic":{},"orders":[{}]}`, "", intents.SchemaInvalid},
		{"no orders", `{"atomic":true}`, "/orders", intents.SchemaInvalid},
		{"no order", `{"atomic":true,"orders":[]}`, "/orders", intents.SchemaInvalid},
		{"no array", `{"atomic":true,"orders":{}}`, "/orders", intents.SchemaInvalid},
		{"unknown member", `{"atomic":true,"orders":[{}],"stop":1}`, "", intents.SchemaInvalid},
		{"orders twice", `{"atomic":true,"orders":[{}],"orders":[{}]}`, "", intents.SchemaInvalid},
		{"other case", `{"atomic":true,"Orders":[{}]}`, "", intents.SchemaInvalid},
		{"101 orders", `{"atomic":true,"orders":[1` + strings.Repeat(",1", 100) + `]}`, "/orders", intents.PayloadTooLarge},
		{"too large", `{"atomic":true,"orders":[{}]}` + strings.Repeat(" ", intents.MaxBatchSize), "", intents.PayloadTooLarge},
	} {
		_, err := intents.ParseBatch([]byte(c.raw))
		want := intents.Refuse(c.code, c.pointer, "")
		if got, ok := err.(*intents.Refusal); !ok || got.Code != want.Code || got.Pointer != want.Pointer { //nolint:errorlint // it is the refusal itself
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
