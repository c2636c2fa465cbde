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
	_, page, _ := strings.Cut(string(text), "\n## Decisions")
	page, _, _ = strings.Cut(page, "\n## What does not hold")
	tests, rows := testNames(t), 0
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "* ") {
			continue
		}
		rows++
		m := lastSpan.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Errorf("no test: %s", line)
			continue
		}
		for _, name := range strings.Fields(m[2]) {
			if !tests[name] {
				t.Errorf("%s does not exist: %s", name, line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("only %d threats", rows)
	}
}
