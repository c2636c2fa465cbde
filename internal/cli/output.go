package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/visible"
)

// printable is a text of a model, a script or a server on a terminal: it controls nothing, and
// hides nothing.
func printable(s string) string { return visible.Prose(s) }

// indentDepth bounds the indentation of data. Each level makes every line below it
// longer, so the output of nested brackets would grow with the square of the depth.
const indentDepth = 32

// printJSON writes data as one document, indented unless it is nested too deep.
// Characters that nobody sees, or that control a terminal, are written as escapes.
func printJSON(w io.Writer, v any) error {
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	text := visible.ProseJSON(doc.Bytes())
	if intents.Nesting(text) <= indentDepth {
		var lines bytes.Buffer
		if err := json.Indent(&lines, text, "", "  "); err != nil {
			return err
		}
		text = lines.Bytes()
	}
	_, err := w.Write(text)
	return err
}

// barWidth is in characters.
const barWidth = 30

// bar shows on a terminal how far long work has come. Elsewhere, and with --json, it
// shows nothing. done removes it.
func (c *command) bar() (show func(done, total int64), done func()) {
	out := c.std.Err
	if c.asJSON || !terminal(out) {
		return nil, func() {}
	}
	p, last := painter(c.std, out), ""
	show = func(n, total int64) {
		line := fmt.Sprintf("%d records", n)
		if total > 0 {
			full := int(min(n, total) * barWidth / total)
			line = fmt.Sprintf("%s%s %d of %d records", p.bold(strings.Repeat("█", full)), strings.Repeat("·", barWidth-full), n, total)
		}
		if line != last {
			fmt.Fprint(out, "\r"+line)
			last = line
		}
	}
	return show, func() { fmt.Fprint(out, "\r"+strings.Repeat(" ", len([]rune(last)))+"\r") }
}

// aligned prints a table: the tab-separated cells of the lines are aligned.
func aligned(print func(t io.Writer)) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	print(t)
	_ = t.Flush() // a builder takes everything
	return b.String()
}

// oneLine is the beginning of a text that others wrote, on one line.
func oneLine(s string, most int) string {
	r := []rune(printable(strings.Join(strings.Fields(s), " ")))
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return string(r)
}

// short shows the beginning of a digest.
func short(id string) string {
	if len(id) > 19 {
		return id[:19] + "…"
	}
	return id
}

func orDash(s []string) string {
	if len(s) == 0 {
		return "–"
	}
	return strings.Join(s, ",")
}

func terminal(w io.Writer) bool {
	if a, ok := w.(aside); ok {
		return a.terminal
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint colours text for a terminal, unless NO_COLOR is set.
type paint struct{ on bool }

func painter(std IO, w io.Writer) paint { return paint{terminal(w) && std.Env("NO_COLOR") == ""} }

func (p paint) wrap(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) bold(s string) string  { return p.wrap("1", s) }
func (p paint) dim(s string) string   { return p.wrap("2", s) }
func (p paint) green(s string) string { return p.wrap("32", s) }
func (p paint) red(s string) string   { return p.wrap("31", s) }
