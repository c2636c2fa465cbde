package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// areas are the requirements by number: each area counts from 1 to n.
var areas = map[string]int{
	"ENV": 13, "RTR": 13, "CAT": 11, "POL": 7, "AUD": 9, "PLN": 21, "AGT": 40, "RUN": 38, "REG": 17, "GTE": 11, "SES": 19,
	"BRK": 10, "SKL": 20, "MEM": 13, "DAT": 12, "STO": 17, "WFL": 9, "LOG": 2, "ART": 2, "CCH": 2, "KBS": 2, "OBS": 33,
	"API": 17, "SEC": 8, "TST": 24, "DEP": 24, "RMP": 7,
}

// allIDs are the 401 ids.
func allIDs() []string {
	var ids []string
	for area, n := range areas {
		for i := range n {
			ids = append(ids, fmt.Sprintf("%s-%02d", area, i+1))
		}
	}
	slices.Sort(ids)
	return ids
}

// requirement is one row of docs/requirements.md.
type requirement struct {
	id, state string
	shownBy   []string
}

var rowPattern = regexp.MustCompile(`^\|([^|]*)\|([^|]*)\|([^|]*)\|$`)

func requirements(t *testing.T) []requirement {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/requirements.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []requirement
	for n, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| id ") || strings.HasPrefix(line, "| :--") {
			continue
		}
		m := rowPattern.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("line %d is not | id | state | shown by |: %s", n+1, line)
			continue
		}
		names := strings.FieldsFunc(m[3], func(r rune) bool { return strings.ContainsRune(" ,`", r) })
		rows = append(rows, requirement{strings.TrimSpace(m[1]), strings.TrimSpace(m[2]), names})
	}
	return rows
}

// TestRequirementsComplete: every id stands there once, and nothing else.
func TestRequirementsComplete(t *testing.T) {
	want := allIDs()
	if len(want) != 401 {
		t.Fatalf("%d ids, want 401", len(want))
	}
	seen := map[string]int{}
	for _, r := range requirements(t) {
		seen[r.id]++
		if !slices.Contains(want, r.id) {
			t.Errorf("%q is no requirement", r.id)
		}
	}
	for _, id := range want {
		if seen[id] != 1 {
			t.Errorf("%s stands there %d times", id, seen[id])
		}
	}
}

// TestRequirementsShown: what is called done names a test, and every test that
// is named exists. An open row names none.
func TestRequirementsShown(t *testing.T) {
	tests := testNames(t)
	for _, r := range requirements(t) {
		switch r.state {
		case "done", "partial":
			if len(r.shownBy) == 0 {
				t.Errorf("%s is %s, but no test shows it", r.id, r.state)
			}
		case "open":
			if len(r.shownBy) > 0 {
				t.Errorf("%s is open, yet shown by %v", r.id, r.shownBy)
			}
		default:
			t.Errorf("%s: state %q is none of done, partial, open", r.id, r.state)
		}
		for _, name := range r.shownBy {
			if !tests[name] {
				t.Errorf("%s names %s, which does not exist", r.id, name)
			}
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)

// testNames finds the Go tests and testscripts of the tree.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case strings.HasSuffix(name, "_test.go"):
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, m := range testFunc.FindAllSubmatch(text, -1) {
				names[string(m[1])] = true
			}
		case strings.HasSuffix(name, ".txt") && strings.Contains(filepath.ToSlash(name), "/testdata/script/"):
			names[d.Name()] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !names["TestRequirementsShown"] {
		t.Fatal("the walk does not even find this test")
	}
	return names
}
