package mcp

import (
	"cmp"
	"fmt"
	"strings"

	"aob.dev/writ/schemas"
)

// maxViolations is how many violations an error names.
const maxViolations = 3

// describe words what is wrong with a document, as "pointer: reason".
func describe(found []schemas.Violation) string {
	var words []string
	for i, v := range found {
		if i == maxViolations {
			words = append(words, fmt.Sprintf("and %d more", len(found)-i))
			break
		}
		words = append(words, printable(cmp.Or(v.Pointer, "/"), 200)+": "+printable(v.Reason, 300))
	}
	return strings.Join(words, "; ")
}
