// Package docs holds the pages of docs/ to the code. Those that say only what the code
// says (the codes, the catalog and the settings) are made from it, by `make generate`.
package docs

//go:generate go test . -run TestGeneratedPages -update

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

const generated = "<!-- Made from the code by `make generate`: edits are lost. -->\n\n"

var update = flag.Bool("update", false, "write the pages that are made from the code")

// TestGeneratedPages: what make generate would write is what is there.
func TestGeneratedPages(t *testing.T) {
	for name, text := range map[string][]byte{"codes.md": codesPage(), "catalog.md": catalogPage(t), "configuration.md": configurationPage()} {
		file := filepath.Join(root, "docs", name)
		if *update {
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, text) {
			t.Errorf("docs/%s is out of step with the code: run make generate", name)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors of a page are its headings as GitHub writes them into links.
func anchors(page []byte) map[string]bool {
	slugs := map[string]bool{}
	for _, m := range heading.FindAllSubmatch(page, -1) {
		text := noSlug.ReplaceAllString(strings.ToLower(string(m[1])), "")
		slugs[strings.ReplaceAll(text, " ", "-")] = true
	}
	return slugs
}

// TestLinks: every relative link of our Markdown leads to a file, and to a heading
// where it names one.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "policies/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	if len(pages) < 5 {
		t.Fatalf("only %d pages found", len(pages))
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			to := string(m[1])
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			target := page
			if to != "" {
				target = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, to)
				continue
			}
			if len(m[2]) == 0 {
				continue
			}
			there, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if !anchors(there)[string(m[2])] {
				t.Errorf("%s links to %s, which has no heading #%s", page, target, m[2])
			}
		}
	}
}

var target = regexp.MustCompile("`make ([a-z]+)`")

// TestMakeTargets: every target that the pages name is in the Makefile.
func TestMakeTargets(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range []string{"README.md", "CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range target.FindAllSubmatch(text, -1) {
			named++
			if !bytes.Contains(makefile, append([]byte("\n"), append(m[1], ':')...)) {
				t.Errorf("%s names `make %s`, which the Makefile does not have", page, m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no page names a target")
	}
}

// TestMeshPackages: each package that an agent mesh has is shown its place here. That the
// places are there is for TestCitations.
func TestMeshPackages(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"core", "registry", "session", "classifier", "confidence", "router", "gateway", "mcp-server", "utils (breaker)", "observability", "example deployment"} {
		if !bytes.Contains(page, []byte("\n* "+name+": `")) {
			t.Errorf("docs/architecture.md does not say where %s is", name)
		}
	}
}

// TestDiagrams: the two sequences of docs/diagrams.md are drawn.
func TestDiagrams(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "diagrams.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"## An agentic session", "## Two calls"} {
		_, section, found := strings.Cut(string(page), title)
		section, _, _ = strings.Cut(section, "\n## ")
		if !found || !strings.Contains(section, "```mermaid\nsequenceDiagram\n") {
			t.Errorf("docs/diagrams.md does not draw %q", title)
		}
	}
}
