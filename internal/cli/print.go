package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"aob.dev/writ/intents"
)

// printable removes what would control a terminal or reverse the reading direction.
// Texts of models, scripts and servers are only shown.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// steers reports control characters, 8-bit ones too, and marks of direction.
func steers(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// indentDepth bounds the indentation of data. Each level makes every line below it
// longer, so the output of nested brackets would grow with the square of the depth.
const indentDepth = 32

// printJSON writes data as one document, indented unless it is nested too deep.
// Characters that control a terminal are written as escapes.
func printJSON(w io.Writer, v any) error {
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	text := escaped(doc.Bytes())
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

// escaped replaces the characters in a document's strings that control a terminal by
// escapes. A valid document has none outside its strings.
func escaped(doc []byte) []byte {
	if !bytes.ContainsFunc(doc, func(r rune) bool { return steers(r) && r != '\n' }) {
		return doc
	}
	var out bytes.Buffer
	for _, r := range string(doc) {
		if steers(r) && r != '\n' {
			fmt.Fprintf(&out, "\\u%04x", r)
			continue
		}
		out.WriteRune(r)
	}
	return out.Bytes()
}

// visible makes every character of a text visible. What is not a letter, mark, number,
// sign or plain space is written as its code point, so nothing can control the terminal
// or look like something else.
func visible(s string, keep string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) || strings.ContainsRune(keep, r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u{%04x}", r)
		}
	}
	return b.String()
}

// printArgs shows the arguments of an order to the person who decides on it: a text of
// several lines, such as a script, as lines, and everything else as JSON.
func printArgs(w io.Writer, raw json.RawMessage) {
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) != nil {
		fmt.Fprintf(w, "args      %s\n", visible(string(raw), ""))
		return
	}
	if len(args) == 0 {
		fmt.Fprintln(w, "args      none")
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		label := "args      " + visible(name, "")
		var text string
		if json.Unmarshal(args[name], &text) != nil {
			fmt.Fprintf(w, "%s: %s\n", label, visible(string(args[name]), ""))
			continue
		}
		text = strings.TrimSuffix(text, "\n")
		if name != "script" && !strings.Contains(text, "\n") {
			fmt.Fprintf(w, "%s: %s\n", label, visible(text, ""))
			continue
		}
		fmt.Fprintf(w, "%s:\n", label)
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(w, "  | %s\n", visible(line, "\t"))
		}
	}
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
