package intents

import "testing"

// TestRulesOnlyIncrease: a record may keep or raise the rules, up to the newest
// that are known.
func TestRulesOnlyIncrease(t *testing.T) {
	for _, c := range []struct {
		from, next, want Rules
		ok               bool
	}{
		{0, 0, RulesFirst, true},
		{0, RulesStrict, RulesStrict, true},
		{RulesFirst, 0, RulesFirst, true},
		{RulesFirst, RulesStrict, RulesStrict, true},
		{RulesStrict, 0, RulesStrict, true},
		{RulesStrict, RulesStrict, RulesStrict, true},
		{RulesStrict, RulesTimed, RulesTimed, true},
		{RulesTimed, RulesStrict, RulesTimed, false},
		{RulesStrict, RulesFirst, RulesStrict, false},
		{RulesFirst, -1, RulesFirst, false},
		{RulesStrict, CurrentRules + 1, RulesStrict, false},
	} {
		got, err := c.from.After(c.next)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%d after %d: %d, %v", c.next, c.from, got, err)
		}
	}
}
