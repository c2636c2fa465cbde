package state

import "testing"

// WithLogout adds the example of docs/orders.md to the moves until the test ends.
func WithLogout(t *testing.T) {
	t.Helper()
	moves[logout.Type] = logout
	t.Cleanup(func() { delete(moves, logout.Type) })
}

// MoveTypes are the types of all moves, as often as they stand in the list.
func MoveTypes() (types []string) {
	for _, m := range allMoves {
		types = append(types, m.Type)
	}
	return types
}
