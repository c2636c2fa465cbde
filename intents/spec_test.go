package intents

import (
	"os"
	"strings"
	"testing"
)

// TestSpecExample: the envelope that docs/spec/envelope.md begins with verifies, and
// has the id and content given there.
func TestSpecExample(t *testing.T) {
	page, err := os.ReadFile("../docs/spec/envelope.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	example, rest, _ := strings.Cut(rest, "```")
	u, err := Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	e, err := u.Verify(testVerifier())
	if err != nil {
		t.Fatal(err)
	}
	_, claims, _ := strings.Cut(e.GrantToken(), ".")
	claims, _, _ = strings.Cut(claims, ".")
	for _, want := range []string{e.ID(), string(mustDecode(u.header)), string(mustDecode(claims))} {
		if !strings.Contains(rest, want) {
			t.Errorf("the page does not say %s", want)
		}
	}
}
