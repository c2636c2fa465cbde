package storage

import (
	"strings"
	"unicode"
)

// maxWords bounds the words of a full-text query; the rest is ignored.
const maxWords = 64

// Words are what a full-text query looks for: runs of letters, numbers and marks. They
// have no syntax, and are the same for every driver.
func Words(text string) []string {
	list := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	})
	return list[:min(len(list), maxWords)]
}
