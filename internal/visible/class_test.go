package visible_test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"aob.dev/writ/internal/visible"
)

// The envelope's schema spells out the characters that no trace_id and no idempotency_key may
// have, so that another table of Unicode changes no verdict. They are those that are hidden
// here, tab and line feed included.
func TestEnvelopeRefusesHidden(t *testing.T) {
	raw, err := os.ReadFile("../../schemas/envelope.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Definitions struct {
			Text struct{ Pattern string }
		}
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	re := regexp.MustCompile(schema.Definitions.Text.Pattern)
	for r := rune(0); r <= 0x10ffff; r++ {
		if 0xd800 <= r && r <= 0xdfff {
			continue
		}
		if want := !visible.Hidden(r) && r != '\t' && r != '\n'; re.MatchString(string(r)) != want {
			t.Errorf("%U: allowed %t", r, !want)
		}
	}
}
