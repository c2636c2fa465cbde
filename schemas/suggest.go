package schemas

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the name that a word most likely misspells; empty if none is near.
func Nearest(word string, names []string) string {
	word = strings.ToLower(word)
	best, least := "", max(len(word)/3, 1)+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		low := strings.ToLower(name)
		d := levenshtein.ComputeDistance(word, low)
		if letters(word) == letters(low) {
			d = min(d, 1) // two transposed letters are one mistake
		}
		if d < least {
			best, least = name, d
		}
	}
	return best
}

// letters of a word, sorted.
func letters(word string) string {
	b := []byte(word)
	slices.Sort(b)
	return string(b)
}
