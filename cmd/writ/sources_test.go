package main

import (
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
			p := readPage(t, file)
			for _, m := range missing(want[name], p.items(), texts) {
				t.Errorf("not on the page: %s", m)
			}
			for _, q := range quoted(p.text, prose[name]) {
				t.Errorf("the document's own words: %s", q)
			}
			p.totals(t)
			p.judge(t, p.run(t))
		})
	}
}

func readPage(t *testing.T, file string) *sourcePage {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &sourcePage{name: strings.TrimSuffix(filepath.Base(file), ".md"), text: string(raw)}
	lines := strings.Split(p.text, "\n")
	p.lines = len(lines)
	table := false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if fence := regexp.MustCompile("^`{3,}").FindString(line); fence != "" {
			end := i + 1 + slices.Index(lines[i+1:], fence)
			if end == i {
				t.Fatalf("%s:%d: the block has no end", p.name, i+1)
			}
			b, err := newBlock(line[len(fence):], strings.Join(lines[i+1:end], "\n"))
			if err != nil {
				t.Errorf("%s:%d: %v", p.name, i+1, err)
			}
			b.line, b.note = i+1, paragraph(lines[end+1:])
			p.blocks = append(p.blocks, b)
			i = end
			continue
		}
		switch {
		case strings.HasPrefix(line, "| printed |"):
			table = true
		case !strings.HasPrefix(line, "|"):
			table = false
		case table && !strings.HasPrefix(line, "| :--"):
			r, err := newRow(line)
			if err != nil {
				t.Errorf("%s:%d: %v", p.name, i+1, err)
			}
			r.line = i + 1
			p.rows = append(p.rows, r)
		}
	}
	return p
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
	case r.outcome != asPrinted && r.note == "":
		return r, fmt.Errorf("%s is %s, but nothing is said about it", r.printed[0], r.outcome)
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
	return strings.Join(append(lines, "ended"), "\n") + "\n"
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
	for name, cmd := range map[string]func(*testscript.TestScript, *world, []string){"fill": fill, "ended": endScene, "eventually": eventually, "tools": serveTools, "submit": submitPrinted,
		"hangup": hangup, "agent": serveAgent, "choosing": choosing} {
		params.Cmds[name] = positive(cmd)
	}
	testscript.RunT(recorder{t, log}, params)
	ended = true
	_, seen, _ := strings.Cut(log.String(), "\n> ") // after the environment
	return unseenLines.ReplaceAllString(seen, "")
}

// here are the addresses that the documents have for the node.
var here = regexp.MustCompile(`http://localhost:80[08]0`)

// judge holds what the page says to what was seen.
func (p *sourcePage) judge(t *testing.T, seen string) {
	t.Helper()
	for _, r := range p.rows {
		switch r.outcome {
		case asPrinted:
			lacking(t, p, r.line, r.printed, seen)
		case differs:
			if len(spans(r.note)) == 0 {
				t.Errorf("%s:%d: what writ does instead is not shown", p.name, r.line)
			}
			fallthrough
		case notYet:
			lacking(t, p, r.line, spans(r.note), seen)
		}
	}
	for _, b := range p.blocks {
		if b.file != "" && b.use != useOwn && !p.uses(b.file) {
			t.Errorf("%s:%d: nothing that is run uses the file %s", p.name, b.line, b.file)
		}
		switch b.use {
		case useShape:
			lacking(t, p, b.line, members(b.text), seen)
		case differs, notYet:
			s := spans(b.note)
			if b.note == "" || b.use == differs && len(s) == 0 {
				t.Errorf("%s:%d: the paragraph after the block does not show what writ does instead", p.name, b.line)
			}
			lacking(t, p, b.line, s, seen)
		}
	}
}

// lacking fails for texts that were not seen.
func lacking(t *testing.T, p *sourcePage, line int, texts []string, seen string) {
	t.Helper()
	for _, s := range texts {
		if !strings.Contains(seen, s) {
			t.Errorf("%s:%d: nothing that is run has shown %s", p.name, line, s)
		}
	}
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

// uses says whether something that is run names a file, or its directory.
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
