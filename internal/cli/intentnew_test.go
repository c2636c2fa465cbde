package cli

import (
	"bytes"
	"path/filepath"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// What `intent new` prints for a type, `intent lint` finds nothing wrong with.
func TestLintTakesNew(t *testing.T) {
	rows := catalog.Builtin().Rows()
	if len(rows) == 0 {
		t.Fatal("no types")
	}
	for _, row := range rows {
		env := func(name string) string {
			return map[string]string{"WRIT_DATA": filepath.Join(t.TempDir(), "none")}[name]
		}
		var intent, out, told bytes.Buffer
		if code := Main(t.Context(), []string{"intent", "new", row.Type}, IO{In: &intent, Out: &intent, Err: &told, Env: env}); code != ExitOK {
			t.Fatalf("%s: exit %d: %s", row.Type, code, told.Bytes())
		}
		signer := string(row.Signers[0])
		if code := Main(t.Context(), []string{"intent", "lint", "--role", signer}, IO{In: &intent, Out: &out, Err: &told, Env: env}); code != ExitOK {
			t.Errorf("%s: exit %d: %s%s", row.Type, code, out.Bytes(), told.Bytes())
		}
	}
}

// What signing fills in may be missing only until then.
func TestLintOfSignedMissesNothing(t *testing.T) {
	top := map[string]any{"constraints": map[string]any{"ttl_sec": 60}}
	for _, pointer := range []string{"/constraints/issued_at", "/constraints/idempotency_key", "/constraints/audience"} {
		if !filledIn(top, pointer) {
			t.Errorf("%s is not filled in", pointer)
		}
	}
	if filledIn(top, "/constraints/ttl_sec") || filledIn(map[string]any{}, "/constraints/audience") {
		t.Error("more is filled in than signing does")
	}
	if filledIn(map[string]any{"constraints": map[string]any{"issued_at": "yesterday"}}, "/constraints/issued_at") {
		t.Error("a wrong time is filled in")
	}
	raw := []byte(`{"version":"1.0","intent":{"type":"soul.get","args":{}},"actor":{"user_id":"ana","tenant":"default"},"constraints":{"ttl_sec":60},"sig":"a..b"}`)
	found, err := lint(raw, catalog.Builtin(), intents.Role(""))
	if err != nil || len(found) < 3 {
		t.Errorf("%v %v", found, err)
	}
}
