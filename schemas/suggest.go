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
	best, least := "", max(len(word)/3, 1)+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}
