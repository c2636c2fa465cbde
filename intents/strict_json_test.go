package intents_test

import (
	"testing"

	"aob.dev/writ/intents"
)

// TestUnmarshalStrict: one document, its members and nothing else.
func TestUnmarshalStrict(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":1}`: true, " {\"a\":1}\n": true, `{"a":1,"b":2}`: false, `{"a":1}}`: false, `{"a":1}]`: false, `{"a":1} {}`: false, `{"a":1`: false, ``: false,
	} {
		var v struct {
			A int `json:"a"`
		}
		if err := intents.UnmarshalStrict([]byte(text), &v); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
