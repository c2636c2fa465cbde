package docs

import (
	"bytes"
	"fmt"

	"aob.dev/writ/intents"
)

// codesPage lists the closed set of codes.
func codesPage() []byte {
	var b bytes.Buffer
	b.WriteString("# Codes\n\n" + generated)
	b.WriteString("A code says why an order was refused, or how it ended. The set is closed. The same string stands in HTTP bodies\n" +
		"(RFC 9457 problem documents, member `code`), in records, in metrics and in the output of `writ --json`.\n\n" +
		"*Retry* says whether the same order may succeed later, unchanged or sealed again. 200 and 202 are not errors.\n\n" +
		"| code | HTTP | retry | meaning | what to do |\n| :-- | :-- | :-- | :-- | :-- |\n")
	for _, c := range intents.Codes() {
		retry := "no"
		if c.Retryable {
			retry = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s | %s |\n", c.Code, c.Status, retry, c.Title, c.Hint)
	}
	return b.Bytes()
}
