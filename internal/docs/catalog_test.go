package docs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// catalogPage lists every row of the catalog, with its schema.
func catalogPage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# Catalog\n\n" + generated)
	b.WriteString("Every type of intent, by executor: what it does; the capability that it needs; who may sign it; its *effect*: `pure` changes\n" +
		"nothing, for `pin` the skill's approval decides, and the others are *idempotent*: they may be done twice.\n" +
		"The link is the schema of the arguments; `TYPE.result.json` beside it has the result. `GET /v1/catalog` publishes the same.\n\n" +
		"`soul.put` needs `souls:write:own` for one's own soul, else `souls:write:tenant`. `write_memory` with `scope: tenant` needs\n" +
		"`memory:write:tenant`: neither `memory:*` nor `*:*` includes it, and only an operator can give it to a role (`writ tenant role put`).\n\n")
	usual := catalog.Builtin().Rows()[0]
	fmt.Fprintf(&b, "`ttl_sec` is at most %d. An executor has %d s", int(usual.TTL().Seconds()), int(usual.Run().Seconds()))
	for _, r := range catalog.Builtin().Rows() {
		if r.TTL() != usual.TTL() {
			t.Fatalf("%s has a ttl of its own: give the table a column", r.Type)
		}
		if r.Run() != usual.Run() {
			fmt.Fprintf(&b, ", `%s` %d s", r.Type, int(r.Run().Seconds()))
		}
	}
	b.WriteString(".\n\n")
	var executors []string
	for _, r := range catalog.Builtin().Rows() {
		if !slices.Contains(executors, r.Executor) {
			executors = append(executors, r.Executor)
		}
	}
	for _, executor := range executors {
		fmt.Fprintf(&b, "## %s\n\n", executor)
		for _, r := range catalog.Builtin().Rows() {
			if r.Executor != executor {
				continue
			}
			effect := ""
			if r.Effect != catalog.Idempotent {
				effect = fmt.Sprintf("; %s", r.Effect)
			}
			fmt.Fprintf(&b, "* [`%s`](../schemas/intents/%s.json): %s. `%s`; %s%s\n", r.Type, r.Type, r.Title, r.Capability,
				strings.Join(words(r.Signers), ", "), effect)
		}
		b.WriteString("\n")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// words are values as text.
func words[T any](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprint(v)
	}
	return out
}
