package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
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

// requirement is one row of docs/requirements.md. One whose text does not begin with a state is done.
type requirement struct {
	id, text, state string
	shownBy         []string
}

// listed is an item of a list: an id, its text, and perhaps tests.
var listed = regexp.MustCompile(`^\* ([A-Z]{3}-\d\d): (.*)$`)

// lastSpan is the code that ends a line.
var lastSpan = regexp.MustCompile("^(.*) `([^`]+)`$")

var stated = regexp.MustCompile(`^\*(\w+)\*: ?`)

func requirements(t *testing.T) []requirement {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/requirements.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []requirement
	for n, line := range strings.Split(string(text), "\n") {
		m := listed.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "|") {
				t.Errorf("line %d is not * id: requirement `shown by`: %s", n+1, line)
			}
			continue
		}
		r := requirement{id: m[1], text: m[2], state: "done"}
		if m := lastSpan.FindStringSubmatch(r.text); m != nil && !strings.HasPrefix(r.text, "*open*") {
			r.text, r.shownBy = m[1], strings.Fields(m[2])
		}
		if m := stated.FindStringSubmatch(r.text); m != nil {
			r.state, r.text = m[1], strings.TrimPrefix(r.text, m[0])
		}
		rows = append(rows, r)
	}
	return rows
}

// TestRequirementsComplete: every id stands there once, with its text, and nothing else.
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
		if r.text == "" {
			t.Errorf("%s has no text", r.id)
		}
	}
	for _, id := range want {
		if seen[id] != 1 {
			t.Errorf("%s stands there %d times", id, seen[id])
		}
	}
}

// reasons are the rows of docs/differs.md: by id, what writ does.
func reasons(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/differs.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for n, line := range strings.Split(string(text), "\n") {
		m := listed.FindStringSubmatch(line)
		if m == nil && !strings.HasPrefix(line, "|") {
			continue
		}
		if m == nil || out[m[1]] != "" {
			t.Errorf("docs/differs.md, line %d, is not one * id: what writ does, and why: %s", n+1, line)
			continue
		}
		out[m[1]] = m[2]
	}
	return out
}

// TestRequirementsShown: what is called done names a test, and every test that
// is named exists. An open row names none. What differs, or is there in part, says so in
// docs/differs.md, and nothing else does; only where tests inside writ are all that shows a
// row may it be partial without a word.
func TestRequirementsShown(t *testing.T) {
	tests, why, reach := testNames(t), reasons(t), reaching(t)
	for _, r := range requirements(t) {
		partial := r.state == "partial"
		if said, must := why[r.id] != "", r.state == "differs" || partial && r.onSurface(reach); said && !must && !partial || must && !said {
			t.Errorf("%s is %s; that docs/differs.md has a row of it is %t", r.id, r.state, said)
		}
		delete(why, r.id)
		switch r.state {
		case "done", "differs", "partial":
			if len(r.shownBy) == 0 {
				t.Errorf("%s is %s, but no test shows it", r.id, r.state)
			}
		case "open":
			if len(r.shownBy) > 0 {
				t.Errorf("%s is open, yet shown by %v", r.id, r.shownBy)
			}
		default:
			t.Errorf("%s: state %q is none of done, differs, partial, open", r.id, r.state)
		}
		for _, name := range r.shownBy {
			if !tests[name] {
				t.Errorf("%s names %s, which is neither package.TestName nor a script nor a page or heading of sources", r.id, name)
			}
		}
	}
	for id := range why {
		t.Errorf("docs/differs.md has %s, which is no requirement", id)
	}
}

var (
	testFunc    = regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(`)
	packageName = regexp.MustCompile(`(?m)^package (\w+)`)
)

// testNames finds the Go tests of the tree, as package.TestName, its scripts, as
// name.txt, and its pages that are run, as sources/<name>.md
// or with one of its headings. A command is named by its folder.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	walk(t, func(name string) {
		switch {
		case strings.HasSuffix(name, "_test.go"):
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			m := packageName.FindSubmatch(text)
			if m == nil {
				t.Fatalf("%s has no package", name)
			}
			pkg := strings.TrimSuffix(string(m[1]), "_test")
			if pkg == "main" {
				pkg = path.Base(path.Dir(name))
			}
			for _, m := range testFunc.FindAllSubmatch(text, -1) {
				names[pkg+"."+string(m[1])] = true
			}
		case path.Ext(name) == ".txt" && strings.Contains(name, "/testdata/script/"):
			names[path.Base(name)] = true
		case strings.HasPrefix(name, "docs/sources/") && path.Ext(name) == ".md":
			names[strings.TrimPrefix(name, "docs/")] = true
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			for a := range anchors(text) {
				names[strings.TrimPrefix(name, "docs/")+"#"+a] = true
			}
		}
	})
	if !names["docs.TestRequirementsShown"] {
		t.Fatal("the walk does not even find this test")
	}
	return names
}

// walk calls f with every file of the tree, by its path from the root.
func walk(t *testing.T, f func(name string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			rel, err := filepath.Rel(root, name)
			f(filepath.ToSlash(rel))
			return err
		}
		if name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
