package docs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// catalogPage lists every row of the catalog, with its schema.
func catalogPage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("# Catalog\n\n" + generated)
	b.WriteString("Every type of intent, with the schema of its arguments; `TYPE.result.json` beside it has the result. `GET /v1/catalog` publishes\n" +
		"the same. *Effect* says what carrying an intent out does to the world: `pure` changes nothing, `idempotent` may be done twice,\n" +
		"`once` must not be repeated; `pin`: as the skill's approval says.\n\n" +
		"Arguments decide a further part of two capabilities. `soul.put` needs `souls:write:own` for one's own soul and `souls:write:tenant`\n" +
		"for any other. `write_memory` with `scope: tenant` needs `memory:write:tenant`, which only a capability with a third part gives:\n" +
		"neither `memory:*` nor `*:*` does. No role has it until an operator gives it (`writ role put`).\n\n")
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
	b.WriteString(".\n\n| type | does | capability | signed by | executor | effect |\n| :-- | :-- | :-- | :-- | :-- | :-- |\n")
	for _, r := range catalog.Builtin().Rows() {
		fmt.Fprintf(&b, "| [`%s`](../schemas/intents/%s.json) | %s | `%s` | %s | %s | %s |\n", r.Type, r.Type, r.Title, r.Capability,
			strings.Join(words(r.Signers), ", "), r.Executor, r.Effect)
	}
	return b.Bytes()
}

// words are values as text.
func words[T any](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprint(v)
	}
	return out
}
