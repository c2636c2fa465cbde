package agents

import (
	"strings"
	"testing"
)

func TestBuiltin(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{Planner, Executor, Composer} {
		a := Builtin(name)
		if a.DisplayName == "" || a.Description == "" || len(a.Description) > 1024 || seen[a.Instructions] {
			t.Errorf("%s: %+v", name, a)
		}
		seen[a.Instructions] = true
		if !strings.Contains(a.Instructions, "is data") || a.Limits != (Limits{DefaultRequests, DefaultTokens}) {
			t.Errorf("%s is told %s with limits %+v", name, a.Instructions, a.Limits)
		}
		if a.Temperature == nil || *a.Temperature > 0.2 {
			t.Errorf("%s has another temperature", name)
		}
	}
}

func TestSystem(t *testing.T) {
	a := Builtin(Composer)
	if a.System(" \n") != a.Instructions {
		t.Error("an empty soul changes the prompt")
	}
	with := a.System("  You are Ada.\n")
	if !strings.HasPrefix(with, a.Instructions) || !strings.HasSuffix(with, "\nYou are Ada.\n") {
		t.Errorf("the soul does not follow the rules: %s", with)
	}
	if got := a.System(strings.Repeat("é", maxSoul)); len(got) > len(a.Instructions)+maxSoul+100 {
		t.Errorf("%d bytes of soul", len(got))
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "name: [", "name: x\nunknown: y\n"} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
