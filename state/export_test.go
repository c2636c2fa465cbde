package state

import "testing"

// WithLogout adds the example of docs/intents.md to the transitions until the test ends.
func WithLogout(t *testing.T) {
	t.Helper()
	transitions[logout.Type] = logout
	t.Cleanup(func() { delete(transitions, logout.Type) })
}

// TransitionTypes returns the types of all transitions, as often as they are listed.
func TransitionTypes() (types []string) {
	for _, m := range allTransitions {
		types = append(types, m.Type)
	}
	return types
}
