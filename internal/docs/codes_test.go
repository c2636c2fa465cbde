package docs

import (
	"bytes"
	"fmt"
	"strings"

	"aob.dev/writ/intents"
)

// codesPage lists the closed set of codes.
func codesPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Codes\n\n" + generated)
	b.WriteString("A code says why an intent was refused, or how it ended. The set is closed. HTTP bodies (RFC 9457, member `code`), records,\n" +
		"metrics and `--json` have the same string. With *retry*, the same intent may succeed later.\n\n")
	for _, c := range intents.Codes() {
		retry := ""
		if c.Retryable {
			retry = ", *retry*"
		}
		hint := c.Hint
		if hint != "" {
			hint = ". " + strings.ToUpper(hint[:1]) + hint[1:]
		}
		fmt.Fprintf(&b, "* `%s` (%d%s): %s%s\n", c.Code, c.Status, retry, c.Title, hint)
	}
	return b.Bytes()
}
