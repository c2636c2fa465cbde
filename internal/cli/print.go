package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"aob.dev/writ/intents"
)

// printable leaves out what would steer a terminal, or turn the order of what is
// read: texts of models, scripts and servers are shown, and no more than that.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// steers: control characters, also those of eight bits, and marks of direction.
func steers(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// indentDepth bounds the indentation of data: each level makes every line below
// it longer, so that brackets alone would grow to their square.
const indentDepth = 32

// printJSON writes data as one document, indented unless it is nested too deep.
// Its texts hold nothing that steers a terminal but as escapes.
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

// escaped writes what steers a terminal in the strings of a document as escapes;
// elsewhere a valid one has nothing of it.
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
