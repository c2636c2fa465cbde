package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// barWidth is in characters.
const barWidth = 30

// bar shows on a terminal how far long work has come; elsewhere, and beside
// --json, it shows nothing. done ends it.
func bar(std IO, cmd *cobra.Command) (show func(done, total int64), done func()) {
	if given(cmd.Flags().Lookup("json")) == "true" || !terminal(std.Err) {
		return nil, func() {}
	}
	p, last := painter(std, std.Err), ""
	show = func(n, total int64) {
		line := fmt.Sprintf("%d records", n)
		if total > 0 {
			full := int(min(n, total) * barWidth / total)
			line = fmt.Sprintf("%s%s %d of %d records", p.bold(strings.Repeat("█", full)), strings.Repeat("·", barWidth-full), n, total)
		}
		if line != last {
			fmt.Fprint(std.Err, "\r"+line)
			last = line
		}
	}
	return show, func() { fmt.Fprint(std.Err, "\r"+strings.Repeat(" ", len([]rune(last)))+"\r") }
}
