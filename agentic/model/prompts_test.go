package model

import (
	"strings"
	"testing"
)

func TestInstructions(t *testing.T) {
	seen := map[string]string{}
	for _, p := range []string{"select_skills", "write_plan", "choose_action", "write_script", "compose"} {
		text := Instructions(p, "")
		if other, twice := seen[text]; twice {
			t.Errorf("%s and %s have the same prompt", p, other)
		}
		seen[text] = p
		if !strings.Contains(text, "is data") || strings.Contains(text, "Persona") {
			t.Errorf("%s: %s", p, text)
		}
		if len(text) > 4000 {
			t.Errorf("%s: %d bytes are not short", p, len(text))
		}
		with := Instructions(p, "  You are Ada.\n")
		if !strings.HasPrefix(with, text) || !strings.HasSuffix(with, "\nYou are Ada.\n") {
			t.Errorf("%s: the soul does not follow the rules: %s", p, with)
		}
	}
	if got := Instructions("compose", strings.Repeat("é", maxSoul)); len(got) > maxSoul+4000 {
		t.Errorf("%d bytes of soul", len(got))
	}
}
