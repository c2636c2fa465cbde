package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// visible is a text in which everything can be seen that is there: what is no
// letter, mark, number, sign or plain space is written as its code point. Nothing
// steers the terminal, and nothing stands elsewhere or otherwise than it reads.
func visible(s string, keep string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) || strings.ContainsRune(keep, r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u{%04x}", r)
		}
	}
	return b.String()
}

// printArgs shows the arguments of an order to who decides on it: a text of
// several lines, such as a script, as such, everything else as JSON.
func printArgs(w io.Writer, raw json.RawMessage) {
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) != nil {
		fmt.Fprintf(w, "args      %s\n", visible(string(raw), ""))
		return
	}
	if len(args) == 0 {
		fmt.Fprintln(w, "args      none")
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		label := "args      " + visible(name, "")
		var text string
		if json.Unmarshal(args[name], &text) != nil {
			fmt.Fprintf(w, "%s: %s\n", label, visible(string(args[name]), ""))
			continue
		}
		text = strings.TrimSuffix(text, "\n")
		if name != "script" && !strings.Contains(text, "\n") {
			fmt.Fprintf(w, "%s: %s\n", label, visible(text, ""))
			continue
		}
		fmt.Fprintf(w, "%s:\n", label)
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(w, "  | %s\n", visible(line, "\t"))
		}
	}
}
