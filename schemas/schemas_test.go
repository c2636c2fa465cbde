package schemas

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestEverySchemaCompiles(t *testing.T) {
	ids := IDs()
	if len(ids) < 60 {
		t.Fatalf("%d schemas are embedded", len(ids))
	}
	for _, id := range ids {
		s, err := Lookup(id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if s.ID() != id || !strings.HasPrefix(id, Base) {
			t.Errorf("Lookup(%s).ID() = %s", id, s.ID())
		}
	}
}

// IDs lists the embedded schemas, sorted.
func IDs() []string {
	l, err := embedded()
	if err != nil {
		return nil // Lookup reports why
	}
	return slices.Sorted(maps.Keys(l.docs))
}
