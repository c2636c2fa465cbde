package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

const sourcesDir = "../../docs/sources"

// What a page says of a thing that its document prints.
const (
	asPrinted = "as printed"
	differs   = "differs"
	notYet    = "not yet"
	noItem    = "no item" // what the extractor took for one
)

// block is a fenced block of a page.
type block struct {
	line       int // of the opening fence
	lang, text string
	file       string // that it is put into
	use        string // one of the uses, differs or notYet
	note       string // the paragraph after it
}

// row is a row of one of its tables.
type row struct {
	line          int
	printed       []string
	outcome, note string
}

type sourcePage struct {
	name, text string
	lines      int
	blocks     []block
	rows       []row
}

// Uses of a block.
const (
	useRun   = "run"   // the page's own script
	useOwn   = "own"   // the page's own file
	useShell = "shell" // printed commands
	useFile  = "file"  // a printed file
	useShape = "shape" // printed answers: their members' names are seen
)

// TestSources runs docs/sources: each page is a script, and what it says of each thing that its
// document prints is held to what the script has seen. See docs/sources/README.md.
func TestSources(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(sourcesDir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := digests(t)
	_, texts, prose := documents(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if name == "README" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := readPage(name, string(raw))
			if err != nil {
				t.Error(err)
			}
			for _, m := range missing(want[name], p.items(), texts) {
				t.Errorf("not on the page: %s", m)
			}
			for _, q := range quoted(p.text, prose[name]) {
				t.Errorf("the document's own words: %s", q)
			}
			p.totals(t)
			for _, f := range p.faults(p.run(t)) {
				t.Error(f)
			}
		})
	}
}

var (
	fence  = regexp.MustCompile("^`{3,}")
	header = "| printed | outcome | what writ does |"
)

// readPage reads a page as far as it can, and tells all that is wrong with its form.
func readPage(name, text string) (*sourcePage, error) {
	lines := strings.Split(text, "\n")
	p := &sourcePage{name: name, text: text, lines: len(lines)}
	var errs []error
	table := false
	for i := 0; i < len(lines); i++ {
		at, line, err := i+1, lines[i], error(nil)
		if f := fence.FindString(line); f != "" {
			length := slices.Index(lines[i+1:], f)
			if length < 0 {
				return p, fmt.Errorf("%s:%d: the block has no end", name, at)
			}
			end := i + 1 + length
			var b block
			b, err = newBlock(line[len(f):], strings.Join(lines[i+1:end], "\n"))
			b.line, b.note = at, paragraph(lines[end+1:])
			p.blocks = append(p.blocks, b)
			i = end
		} else if table = line == header || table && strings.HasPrefix(line, "|"); table && line != header && !strings.HasPrefix(line, "| :--") {
			var r row
			r, err = newRow(line)
			r.line = at
			p.rows = append(p.rows, r)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, at, err))
		}
	}
	return p, errors.Join(errs...)
}

// newBlock reads an info string: run, sh, or LANG [own] [FILE] [shape|differs|not yet].
func newBlock(info, text string) (block, error) {
	lang, rest, _ := strings.Cut(strings.TrimSpace(info), " ")
	b := block{lang: lang, text: text + "\n"}
	for _, use := range []string{useShape, differs, notYet} {
		if before, ok := strings.CutSuffix(rest, use); ok {
			b.use, rest = use, before
		}
	}
	if after, ok := strings.CutPrefix(rest, useOwn+" "); ok {
		b.use, rest = useOwn, after
	}
	b.file = strings.TrimSpace(rest)
	switch {
	case b.use != "":
	case lang == useRun:
		b.use = useRun
	case b.file != "":
		b.use = useFile
	case lang == "sh":
		b.use = useShell
	default:
		return b, fmt.Errorf("the block %q does not say what becomes of it", info)
	}
	return b, nil
}

// paragraph is the next one.
func paragraph(lines []string) string {
	text := strings.TrimLeft(strings.Join(lines, "\n"), "\n")
	text, _, _ = strings.Cut(text, "\n\n")
	if strings.HasPrefix(text, "```") || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "|") {
		return ""
	}
	return text
}

func newRow(line string) (row, error) {
	const bar = "\x00"
	cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, bar), "| "), "|")
	for len(cells) < 3 {
		cells = append(cells, "")
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], bar, "|"))
	}
	r := row{printed: spans(cells[0]), outcome: cells[1], note: cells[2]}
	switch {
	case len(cells) > 3:
		return r, fmt.Errorf("more than | printed | outcome | note |: %s", line)
	case len(r.printed) == 0:
		return r, fmt.Errorf("nothing is printed: %s", line)
	case !slices.Contains([]string{asPrinted, differs, notYet, noItem}, r.outcome):
		return r, fmt.Errorf("%q is no outcome", r.outcome)
	case r.outcome == noItem && r.note == "":
		return r, fmt.Errorf("%s is %s, but not why", r.printed[0], r.outcome)
	}
	return r, nil
}

// spans are the code spans of a text.
func spans(text string) []string {
	var all []string
	for _, m := range span.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.TrimSpace(m[1]))
	}
	return all
}

// items are the digests of what the page has of its document.
func (p *sourcePage) items() map[string]bool {
	have := map[string]bool{}
	add := func(text string) {
		have[digest(text)] = true
		for _, n := range namesIn(text) {
			have[digest(n)] = true
		}
	}
	for _, b := range p.blocks {
		if b.use != useRun && b.use != useOwn {
			add(b.text)
		}
	}
	for _, r := range p.rows {
		for _, s := range r.printed {
			add(s)
			if r.outcome == noItem {
				have[strings.TrimPrefix(s, "#")] = true
			}
		}
	}
	return have
}

// totals are stated in the page, where readers see them.
func (p *sourcePage) totals(t *testing.T) {
	t.Helper()
	n := map[string]int{}
	for _, r := range p.rows {
		n[r.outcome] += len(r.printed)
	}
	for _, b := range p.blocks {
		switch b.use {
		case useRun, useOwn:
		case differs, notYet:
			n[b.use]++
		default:
			n[asPrinted]++
		}
	}
	says := fmt.Sprintf("Printed: %d. As printed: %d, differs: %d, not yet: %d.", n[asPrinted]+n[differs]+n[notYet], n[asPrinted], n[differs], n[notYet])
	if !strings.Contains(p.text, says) {
		t.Errorf("the page does not say: %s", says)
	}
	t.Log(says)
}

// script is the page as a script; each line stands where it stands in the page.
func (p *sourcePage) script() string {
	lines := make([]string, p.lines)
	for i, b := range p.blocks {
		switch {
		case b.file != "":
			lines[b.line-1] = fmt.Sprintf("put %d", i)
		case b.use == useRun:
			copy(lines[b.line:], strings.Split(strings.TrimSuffix(b.text, "\n"), "\n"))
		case b.use == useShell:
			lines[b.line-1] = fmt.Sprintf("printed %d", i)
		}
	}
	return strings.Join(lines, "\n") + "\nended\n"
}

// recorder keeps what a script has seen.
type recorder struct {
	*testing.T
	log *strings.Builder
}

func (r recorder) Log(args ...any)                         { fmt.Fprint(r.log, args...) }
func (r recorder) Verbose() bool                           { return true }
func (r recorder) Parallel()                               {}
func (r recorder) Run(_ string, script func(testscript.T)) { script(r) }

// unseenLines are lines of a script's log that nobody but its author has written.
var unseenLines = regexp.MustCompile(`(?m)^(?:#|> (?:! )?(?:stdout|stderr|grep|capture|env|eventually) ).*$`)

// run runs the page and answers what has been seen: commands, files, and what was printed.
func (p *sourcePage) run(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), p.name+".txt")
	if err := os.WriteFile(file, []byte(p.script()), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &strings.Builder{}
	ended := false
	defer func() {
		if !ended || testing.Verbose() && os.Getenv("WRIT_TRANSCRIPT") != "" {
			t.Log(log)
		}
	}()
	params := scripts("")
	params.Files = []string{file}
	params.Cmds["put"] = positive(func(ts *testscript.TestScript, _ *world, args []string) {
		b := p.blocks[must[int](ts)(number(args))]
		ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(b.file)), 0o755))
		ts.Check(os.WriteFile(ts.MkAbs(b.file), []byte(b.text), 0o600))
		if b.use == useFile {
			ts.Logf("%s", b.text)
		}
	})
	params.Cmds["printed"] = positive(func(ts *testscript.TestScript, w *world, args []string) {
		b := p.blocks[must[int](ts)(number(args))]
		ts.Logf("%s", b.text)
		shell(ts, w, here.ReplaceAllLiteralString(b.text, w.url))
	})
	params.Cmds["submit"] = positive(submitPrinted)
	testscript.RunT(recorder{t, log}, params)
	ended = true
	_, seen, _ := strings.Cut(log.String(), "\n> ") // after the environment
	return unseenLines.ReplaceAllString(seen, "")
}

// here are the addresses that the documents have for the node.
var here = regexp.MustCompile(`http://localhost:80[08]0`)

// faults are where the page says something else than what was seen.
func (p *sourcePage) faults(seen string) []string {
	var all []string
	fault := func(line int, format string, args ...any) {
		all = append(all, fmt.Sprintf("%s:%d: ", p.name, line)+fmt.Sprintf(format, args...))
	}
	shown := func(line int, texts []string) {
		for _, s := range texts {
			if !strings.Contains(seen, s) {
				fault(line, "nothing that is run has shown %s", s)
			}
		}
	}
	instead := func(line int, outcome, note string) {
		if note == "" || outcome == differs && len(spans(note)) == 0 {
			fault(line, "it does not say and show what writ does instead")
		}
		shown(line, spans(note))
	}
	for _, r := range p.rows {
		switch r.outcome {
		case asPrinted:
			shown(r.line, r.printed)
		case differs, notYet:
			instead(r.line, r.outcome, r.note)
		}
	}
	for _, b := range p.blocks {
		if b.file != "" && b.use != useOwn && !p.uses(b.file) {
			fault(b.line, "nothing that is run uses the file %s", b.file)
		}
		switch b.use {
		case useShape:
			shown(b.line, members(b.text))
		case differs, notYet:
			instead(b.line, b.use, b.note)
		}
	}
	return all
}

var member = regexp.MustCompile(`"([\w.$-]+)"\s*:`)

// members are the names of the members of an answer, or where it is no JSON the names in it.
func members(text string) []string {
	var all []string
	for _, m := range member.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		all = namesIn(text)
	}
	return all
}

// uses reports whether something that is run names a file, or its directory.
func (p *sourcePage) uses(file string) bool {
	for _, b := range p.blocks {
		if b.use == useRun || b.use == useShell {
			dir := path.Dir(file)
			if strings.Contains(b.text, file) || dir != "." && strings.Contains(b.text, strings.Split(dir, "/")[0]) {
				return true
			}
		}
	}
	return false
}

// TestSourcesFail: a page fails for what it does not have, does not run, and does not show.
func TestSourcesFail(t *testing.T) {
	const form = "| printed | outcome | what writ does |\n| :-- | :-- | :-- |\n"
	for name, c := range map[string]struct{ page, seen, want string }{
		"seen":           {form + "| `a_b` | as printed | |", "a_b", ""},
		"not seen":       {form + "| `a_b` | as printed | |", "> exec", "page:3: nothing that is run has shown a_b"},
		"not shown":      {form + "| `a_b` | differs | c |", "a_b", "page:3: it does not say and show"},
		"other":          {form + "| `a_b` | differs | `c` |", "a_b", "page:3: nothing that is run has shown c"},
		"not said":       {form + "| `a_b` | not yet | |", "a_b", "page:3: it does not say and show"},
		"said":           {form + "| `a_b` | not yet | c |", "", ""},
		"no outcome":     {form + "| `a_b` | done | c |", "a_b", `page:3: "done" is no outcome`},
		"no use":         {"```json\n{}\n```", "", "page:1: the block"},
		"no end":         {"```json\n{}", "", "page:1: the block has no end"},
		"not used":       {"```json x.json\na_b\n```", "", "page:1: nothing that is run uses the file x.json"},
		"member":         {"```json shape\n{\"a_b\": 1}\n```", "", "page:1: nothing that is run has shown a_b"},
		"block":          {"```json differs\na_b\n```\n\nBut `c`.", "", "page:1: nothing that is run has shown c"},
		"missing":        {form + "| `a_c` | as printed | |", "a_c", "item 1 of 1"},
		"own":            {"```json own x.json\na_b\n```", "", "item 1 of 1"},
		"of a script":    {"```run\nexec a_b\n```", "> exec a_b", "item 1 of 1"},
		"no such reason": {form + "| `#" + digest("a_b") + "` | no item | |", "", "page:3: #"},
		"no item":        {form + "| `#" + digest("a_b") + "` | no item | a word |", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := readPage("page", c.page)
			got := append(p.faults(c.seen), missing([]string{digest("a_b")}, p.items(), nil)...)
			if err != nil {
				got = append([]string{err.Error()}, got...)
			}
			if c.want == "" && len(got) > 0 || !strings.Contains(strings.Join(got, "\n"), c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestItemsOf: what is taken for an item of a document, and what of one counts.
func TestItemsOf(t *testing.T) {
	const doc = "Read `a b` of my\\_name at /x/{id}. ``` json {\"k\": 1} ```\n\nPUT /y  \n{ \"m\": 2 }\n\n{  \n \"a\": \"b → c\"  \n}\n\nCall do\\_it(a, b) with { c, d? }.\n\n| state | The plan |\n"
	want := []string{`{"k": 1} `, "PUT /y  \n{ \"m\": 2 }", "{  \n \"a\": \"b → c\"  \n}", "state", "a b", "my_name", "/x/{id}", "do_it", "do_it(a, b)", "{ c, d? }"}
	if got := itemsOf(doc); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, pair := range [][2]string{
		{"{\"a\": 1}", "{ \"a\":1 }\n"},
		{"text: \"You are a friendly helper.\"\nb: 1", "text: \"…\"\nb: 1"},
		{"pnpm install pnpm build pnpm", "pnpm install\npnpm build\npnpm"},
	} {
		if digest(pair[0]) != digest(pair[1]) {
			t.Errorf("%q counts as %q, %q as %q", pair[0], reduced(pair[0]), pair[1], reduced(pair[1]))
		}
	}
}
