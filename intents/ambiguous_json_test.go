package intents_test

import (
	"errors"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

func TestUnambiguous(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, text := range []string{
		`null`, `{"n":9007199254740993,"m":-0}`, ` [1.50, 1e400] `, `{"a":{"b":1},"b":1}`, `"\ud83d\ude00"`, `"\\ud83d"`, deep(intents.MaxAnswerDepth),
	} {
		if err := intents.Unambiguous([]byte(text)); err != nil {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	for text, pointer := range map[string]string{
		`{"n":"x","n":2}`: "/n", `[{"a":{"b":1,"b":1}}]`: "/0/a/b", `{"n":1,"\u006e":2}`: "/n", `{"x":1} {}`: "", ``: "", `{`: "",
		"\"\xff\"": "", `"\ud83d"`: "", `"\ud83dx"`: "", `"\ude00\ud83d"`: "", `"\ud83d\n"`: "", deep(intents.MaxAnswerDepth + 1): "", deep(1_000_000): "",
	} {
		var refusal *intents.Refusal
		if err := intents.Unambiguous([]byte(text)); !errors.As(err, &refusal) || refusal.Pointer != pointer {
			t.Errorf("%.40s: %v, want %q", text, err, pointer)
		}
	}
}

func FuzzUnambiguous(f *testing.F) {
	for _, seed := range []string{`{"n":"x","n":2}`, `[1,{"a":"\ud83d\ude00"}]`, `"\ud83d\\`, `9007199254740993`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		// What has a canonical form has one value.
		if _, err := intents.Canonical(raw); err == nil {
			if err := intents.Unambiguous(raw); err != nil {
				t.Errorf("%q: %v", raw, err)
			}
		}
	})
}
