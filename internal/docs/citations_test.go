package docs

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// passage is one text that somebody reads beside the code: the comments of a Go
// file one by one, of other files the whole.
type passage struct {
	file string // from the root
	line int
	text string
}

// readable are the files that are passages as a whole. Data of tests and what is
// made elsewhere are not ours to word.
var readable = []string{".md", ".rego", ".yml", ".yaml", ".sh", ".json"}

func passages(t *testing.T) []passage {
	t.Helper()
	var all []passage
	walk(t, func(name string) {
		switch ext := path.Ext(name); {
		case strings.Contains("/"+name, "/testdata/"), strings.HasPrefix(name, "docs/sources/"): // others' words
		case ext == ".go":
			all = append(all, comments(t, name)...)
		case slices.Contains(readable, ext) || path.Base(name) == "Makefile":
			text, err := os.ReadFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if ext != ".json" || strings.Contains(line, `"description":`) {
					all = append(all, passage{name, i + 1, line})
				}
			}
		}
	})
	if len(all) < 1000 {
		t.Fatalf("only %d passages found", len(all))
	}
	return all
}

func comments(t *testing.T, name string) []passage {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var all []passage
	for _, group := range file.Comments {
		all = append(all, passage{name, set.Position(group.Pos()).Line, group.Text()})
	}
	return all
}

var (
	standard      = regexp.MustCompile(`RFC \d+|\[RFC`)
	requirementID = regexp.MustCompile(`\b(?:[A-Z]{3}-\d\d|C-\d\d)\b`)
	upperDesign   = regexp.MustCompile(`\bDESIGN\b`)
	rowID         = regexp.MustCompile(`(?m)^[|*] ([A-Z]{1,3}-\d\d)(?: \||:)`)
	folders       = "agentic|audit|cmd|deploy|docs|executors|gateway|intents|internal|policies|router|schemas|storage"
	cited         = regexp.MustCompile("(?:^|[\\s`(\"'])(" +
		`[\w.{},*<>/-]*\w[\w{},*<>-]*\.(?:go|md)\b|` + // a Go or Markdown file
		"(?:" + folders + `)/[\w./{},*<>-]+)`) // a path from the root
)

// TestCitations: what a comment or a page cites is in the repository. A section
// sign belongs to a public standard that is named beside it, a requirement or a
// conflict is one of the lists, and a Markdown or Go file is there.
func TestCitations(t *testing.T) {
	ids := map[string]bool{}
	for _, page := range []string{"docs/requirements.md", "docs/conflicts.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range rowID.FindAllSubmatch(text, -1) {
			ids[string(m[1])] = true
		}
	}
	areas := regexp.MustCompile(`^(?:` + strings.Join(areaNames(), "|") + `|C)-`)
	for _, p := range passages(t) {
		if p.file == "docs/conflicts.md" || p.file == "docs/requirements.md" {
			continue // they quote documents of others
		}
		if upperDesign.MatchString(p.text) {
			t.Errorf("%s:%d cites a DESIGN that is not in the repository", p.file, p.line)
		}
		if strings.Contains(p.text, "§") && !standard.MatchString(p.text) {
			t.Errorf("%s:%d cites a section of no standard: %s", p.file, p.line, p.text)
		}
		for _, id := range requirementID.FindAllString(p.text, -1) {
			if areas.MatchString(id) && !ids[id] {
				t.Errorf("%s:%d cites %s, which is no requirement or conflict", p.file, p.line, id)
			}
		}
		for _, m := range cited.FindAllStringSubmatch(p.text, -1) {
			if !exists(p.file, m[1]) {
				t.Errorf("%s:%d cites %s, which is not there", p.file, p.line, m[1])
			}
		}
	}
}

func areaNames() []string {
	var names []string
	for name := range areas {
		names = append(names, name)
	}
	return names
}

// modules are Go modules whose names read like files.
var modules = []string{"nats.go"}

// exists reports whether a cited file or folder is there, seen from the root or
// from beside the file that cites it, with or without its extension. Patterns
// count as there.
func exists(from, name string) bool {
	name = strings.TrimRight(name, ".,-")
	if strings.ContainsAny(name, "{}*<>") || slices.Contains(modules, name) {
		return true
	}
	beside := path.Dir(from)
	if from == "internal/config/settings.yaml" { // it is a page of docs
		beside = "docs"
	}
	for _, dir := range []string{".", beside} {
		file := filepath.Join(root, dir, name)
		if _, err := os.Stat(file); err == nil {
			return true
		}
		if named, err := filepath.Glob(file + ".*"); err == nil && len(named) > 0 {
			return true
		}
	}
	return false
}
