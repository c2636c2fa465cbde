package agents_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"aob.dev/writ/agentic/agents"
)

var update = flag.Bool("update-scopes", false, "write what the built-in agents may do")

// TestBuiltinScopes: what the built-in agents may do is what auditors judge by, and what
// logs are held to that exist. A change of it, but for digests, is a change of the rules.
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
