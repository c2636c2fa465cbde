package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// An item is what a document prints that is no sentence: a fenced block, a code span, a name.
// docs/sources/items.txt has a digest for each item of each document, in its order.
const itemsFile = "../../docs/sources/items.txt"

var writeItems = flag.Bool("items", false, "write docs/sources/items.txt from the documents in $WRIT_SOURCES")

// value is what may follow a name: that of an attribute, of a label or a list.
const value = `(?:=(?:"[^"\s]*"|True)|\{\w+="[^"\s]*"\}|: \[[\w, ]+\])?`

var (
	fenced    = regexp.MustCompile("(?s)```[ \t]*([a-z]*)[ \t]*\\s(.*?)```") // also of pages whose line breaks are lost
	hardLines = regexp.MustCompile(`(?m)(?:^.*  \n)+.*$`)                    // code that was converted without fences
	span      = regexp.MustCompile("`([^`]+)`")
	escaped   = regexp.MustCompile(`\\([\\_\[\]{}()<>*#+.=~|&!-])`)
	firstCell = regexp.MustCompile(`(?m)^\|\s*([a-z][\w.-]*)\s*\|`)
	names     = regexp.MustCompile(strings.Join([]string{
		`\b[a-zA-Z][a-zA-Z0-9]*(?:\.[a-zA-Z]\w*)*(?:_[a-zA-Z0-9]+|_<\w+>)+(?:\.[a-z]\w*)*` + value, // names_like_this, of.these_too
		`\b[a-z]{2,}[a-z0-9_]*(?:\.[a-z_]{2,}[a-z0-9_]*)+` + value,                                 // dotted.names
		`\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+(?:\[T\])?`,                                            // TypesLikeThis
		`\b[a-z]+(?:[A-Z][a-z0-9]+)+`,                                                              // functionsLikeThis
		`\b[A-Z]{2,}[A-Z0-9]*(?:_[A-Z0-9]+)+`,                                                      // CODES_LIKE_THIS
		`(?:GET|POST|PUT|PATCH|DELETE) /[\w{}./:-]*[\w}]`,                                          // GET /requests
		`(?:^|[\s(|])/[a-z][\w{}./:-]*[\w}]`,                                                       // /paths
		`\{ [a-z_]+: [^{}|]{1,80} \}`,                                                              // { fragments: of objects }
	}, "|"))
	// shapes are calls, and lists of members.
	shapes = regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\([a-z_]+(?:, [a-z_]+)*\)|\{ [a-z_]+\??(?:, [a-z_]+\??)+ \}`)
	// prose is a run of words, with one at least of those that only sentences have.
	words    = regexp.MustCompile(`(?:[A-Za-z][A-Za-z'’-]*|…)(?:[,.;!?)]*\s+[(]?(?:[A-Za-z][A-Za-z'’-]*|…))*[.!?]*`)
	sentence = regexp.MustCompile(`(?i)(?:^|\s)(?:a|an|the|to|of|is|are|be|and|or|for|with|without|in|on|by|from|your|you|when|if|that|this|using|about|must|should|no|not|has)[,.;!?)]*(?:\s|$)`)
)

// reduced is an item without its sentences and without its white space, which not all documents kept.
func reduced(text string) string {
	text = words.ReplaceAllStringFunc(text, func(run string) string {
		if strings.Contains(run, "…") || len(strings.Fields(run)) >= 4 && sentence.MatchString(run) {
			return "…"
		}
		return run
	})
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(reduced(text)))
	return hex.EncodeToString(sum[:6])
}

// namesIn are the names of a text that look like code.
func namesIn(text string) []string {
	var all []string
	for _, n := range names.FindAllString(text, -1) {
		all = append(all, strings.TrimLeft(n, " \t\n(|"))
	}
	return append(all, shapes.FindAllString(text, -1)...)
}

// itemsOf are the items of a document, each once.
func itemsOf(doc string) []string {
	var all []string
	seen := map[string]bool{}
	add := func(items ...string) {
		for _, i := range items {
			if d := digest(i); !seen[d] && reduced(i) != "…" && reduced(i) != "" {
				seen[d] = true
				all = append(all, i)
			}
		}
	}
	cut := func(re *regexp.Regexp, group int, take func(string)) {
		doc = re.ReplaceAllStringFunc(doc, func(m string) string {
			take(re.FindStringSubmatch(m)[group])
			return "\n"
		})
	}
	block := func(code string) {
		if strings.ContainsAny(code, "─│├└┌▼▶→←") && !strings.HasPrefix(code, "{") { // a drawing counts by its names
			add(namesIn(code)...)
			return
		}
		add(code)
	}
	cut(fenced, 2, block)
	doc = escaped.ReplaceAllString(doc, "$1")
	cut(hardLines, 0, block)
	for _, m := range firstCell.FindAllStringSubmatch(doc, -1) {
		add(m[1])
	}
	cut(span, 1, func(s string) { add(s) })
	for _, n := range namesIn(doc) {
		if !glued(n, all) {
			add(n)
		}
	}
	return all
}

var letters = regexp.MustCompile(`^[a-z]+$`)

// glued reports whether a name is another one and a word, between which a conversion lost the space.
func glued(name string, items []string) bool {
	for _, i := range items {
		if len(i) < 7 || !strings.ContainsAny(i, "_.") {
			continue
		}
		if rest, ok := strings.CutPrefix(name, i); ok && letters.MatchString(rest) {
			return true
		}
		if rest, ok := strings.CutSuffix(name, i); ok && letters.MatchString(rest) {
			return true
		}
	}
	return false
}

// digests are those of items.txt, by document.
func digests(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(itemsFile)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(raw)) {
		doc, d, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[doc] = append(all[doc], d)
	}
	return all
}

// documents are the items of the documents that $WRIT_SOURCES names, by digest; none without it.
func documents(t *testing.T) (lines []string, texts map[string]string, prose map[string]string) {
	t.Helper()
	texts, prose = map[string]string{}, map[string]string{}
	dir := os.Getenv("WRIT_SOURCES")
	if dir == "" {
		return nil, texts, prose
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("WRIT_SOURCES names no documents: %s, %v", dir, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		prose[name] = string(raw)
		for _, item := range itemsOf(string(raw)) {
			lines = append(lines, name+" "+digest(item)+"\n")
			texts[digest(item)] = item
		}
	}
	return lines, texts, prose
}

// TestItems: items.txt is what the documents print, where they are at hand, and each has its page.
func TestItems(t *testing.T) {
	for name := range digests(t) {
		if _, err := os.Stat(filepath.Join(sourcesDir, name+".md")); err != nil {
			t.Errorf("%s has no page: %v", name, err)
		}
	}
	lines, _, _ := documents(t)
	if lines == nil {
		return // a checkout has the digests only
	}
	if *writeItems {
		if err := os.WriteFile(itemsFile, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(itemsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != strings.Join(lines, "") {
		t.Error("docs/sources/items.txt is not what the documents print: run this test with -items")
	}
}

// missing are the items of a document that its page does not have, each by its digest, place and text.
func missing(want []string, have map[string]bool, texts map[string]string) []string {
	var out []string
	last := "the beginning"
	for i, d := range want {
		if have[d] {
			last = d
			continue
		}
		text := texts[d]
		if text == "" {
			text = "(its text: set WRIT_SOURCES to the directory of the documents)"
		}
		out = append(out, fmt.Sprintf("item %d of %d, %s, after %s: %s", i+1, len(want), d, last, text))
	}
	return out
}

// quoted are the runs of nine words that a page has from its document.
func quoted(page, doc string) []string {
	const run = 9
	of := func(text string) []string {
		return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	}
	page = span.ReplaceAllString(fenced.ReplaceAllString(page, " | "), " | ")
	shingles := map[string]bool{}
	d := of(doc)
	for i := range max(0, len(d)-run+1) {
		shingles[strings.Join(d[i:i+run], " ")] = true
	}
	var out []string
	p := of(page)
	for i := range max(0, len(p)-run+1) {
		if s := strings.Join(p[i:i+run], " "); shingles[s] {
			out = append(out, s)
		}
	}
	return out
}
