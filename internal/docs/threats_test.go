package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestThreatsShown: each threat is attacked by a test, and every test that is
// named exists.
func TestThreatsShown(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/threats.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests, rows := testNames(t), 0
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(line, "| threat ") || strings.HasPrefix(line, "| :--") {
			continue
		}
		rows++
		names := strings.Fields(cells[3])
		if len(names) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, name := range names {
			if !tests[name] {
				t.Errorf("%s does not exist: %s", name, line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("only %d threats", rows)
	}
}
