package schemas

import (
	"maps"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Names lists the members that a schema of ours knows of the object that a
// pointer's last member stands in.
func (s *Schema) Names(pointer string) []string {
	node := s.tree
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for _, token := range tokens[:len(tokens)-1] {
		node = resolve(node, "#/properties/"+token)
	}
	object, _ := resolve(node, "#/properties").(map[string]any)
	return slices.Sorted(maps.Keys(object))
}

// Nearest is the name that a word is most likely a misspelling of; empty: none is near.
func Nearest(word string, names []string) string {
	most := max(len(word)/3, 1)
	if len(word) > 3 {
		most = max(most, 2) // two letters that have changed places are two changes
	}
	best, least := "", most+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}
