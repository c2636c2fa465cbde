package intents_test

import (
	"regexp"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// only matches a hint that refers just to another part of the same answer.
var only = regexp.MustCompile(`^see [a-z_ ']+( and [a-z_]+)?$`)

// TestHints: each code but success has a hint, in words of its own.
func TestHints(t *testing.T) {
	for _, i := range intents.Codes() {
		switch {
		case i.Code == intents.OK:
		case i.Hint == "":
			t.Errorf("%s has no hint", i.Code)
		case only.MatchString(i.Hint), i.Hint == i.Title, strings.Contains(i.Hint, "see the reason"), i.Hint == "try again":
			t.Errorf("%s: %q does not help", i.Code, i.Hint)
		case strings.Contains(i.Hint, "again under") || strings.Contains(i.Hint, "Prefer:") || strings.Contains(i.Hint, "context."):
			t.Errorf("%s: %q is for who signs", i.Code, i.Hint)
		case strings.Contains(i.Hint+i.SignerHint(), "pointer"):
			t.Errorf("%s: %q speaks of a pointer, and many a refusal has none", i.Code, i.Hint)
		}
	}
}
