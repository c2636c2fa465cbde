package agents

import (
	"bytes"
	"regexp"
)

// A block is text that the prompts of several agents share. It has a file of its own, so that it
// is changed, and restored, without them.

// blockLine is a line of an agent's file that a block replaces.
var blockLine = regexp.MustCompile(`(?m)^([ \t]*)\{\{(prompts/[^/{}\n]+\.md)\}\}[ \t]*$`)

// withBlocks inserts the blocks that an agent's file names, each indented like its name.
func withBlocks(text []byte, files map[string][]byte) ([]byte, *Fault) {
	var out []byte
	end := 0
	for _, m := range blockLine.FindAllSubmatchIndex(text, -1) {
		name := string(text[m[4]:m[5]])
		block, ok := files[name]
		if !ok {
			return nil, &Fault{Line: 1 + bytes.Count(text[:m[0]], []byte("\n")), Reason: "there is no " + name + ": add it, or take the line out"}
		}
		out = append(out, text[end:m[0]]...)
		for i, line := range bytes.Split(bytes.TrimRight(block, "\n"), []byte("\n")) {
			if i > 0 {
				out = append(out, '\n')
			}
			out = append(append(out, text[m[2]:m[3]]...), line...)
		}
		end = m[1]
	}
	return append(out, text[end:]...), nil
}
