package agents_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"aob.dev/writ/state/agents"
)

var update = flag.Bool("update-scopes", false, "write what the built-in agents may do")

// TestBuiltinScopes: auditors judge existing logs by the scopes of the built-in agents. A change
// of them, except of digests, is a change of the rules.
func TestBuiltinScopes(t *testing.T) {
	const file = "../../intents/testdata/second/agents.json"
	raw, err := json.MarshalIndent(agents.BuiltinScopes(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	raw = append(raw, '\n')
	if *update {
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(was, raw) {
		t.Errorf("%s is not what the built-in agents may do: error %v", file, err)
	}
}
