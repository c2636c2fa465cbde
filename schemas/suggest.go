package schemas

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

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
