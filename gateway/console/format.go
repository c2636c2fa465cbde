package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	textdiff "github.com/rogpeppe/go-internal/diff"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/visible"
)

// functions are those of the templates.
var functions = template.FuncMap{"short": short, "brief": brief, "excerpt": excerpt, "sentence": sentence, "cut": cut, "stands": stepStands, "when": when, "pretty": pretty, "shown": shown, "join": strings.Join, "decimal": decimal, "ratio": ratio, "share": share, "verdicts": func() []string { return []string{"", "allow", "deny", "hold"} }}

// ratio is n divided by of; 0 of nothing.
func ratio(n, of int64) float64 { return float64(n) / float64(max(of, 1)) }

// share says how many of how many, and in percent.
func share(n, of int64) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%d of %d (%.0f %%)", n, of, 100*ratio(n, of))
}

// short returns a digest or id shortened to what people need to distinguish it.
func short(id string) string {
	id = strings.TrimPrefix(id, "sha256:")
	if len(id) > 20 {
		return id[:12] + "…"
	}
	return id
}

// when formats a time to the second. The script shows it in the time of the browser's place.
func when(v any) template.HTML {
	switch t := v.(type) {
	case time.Time:
		if !t.IsZero() {
			return template.HTML(t.UTC().Format(`<time datetime="2006-01-02T15:04:05Z">2006-01-02 15:04:05 UTC</time>`)) //nolint:gosec // a time has no texts
		}
	case *time.Time:
		if t != nil {
			return when(*t)
		}
	case string:
		if at, err := time.Parse(time.RFC3339, t); err == nil {
			return when(at)
		}
	}
	return "–"
}

// brief is the beginning of a document in one line.
func brief(raw json.RawMessage) string { return cut(shown(string(visible.JSON(raw))), maxBrief) }

const maxBrief = 200

// decimal formats a number with the given decimal places. Templates cannot check printf verbs
// against their values.
func decimal(places int, n float64) string { return strconv.FormatFloat(n, 'f', places, 64) }

// shown makes every character of a text visible, so that nothing is disguised.
func shown(s string) string { return visible.Text(s, "\n\t") }

// sentence makes one of a title and what says more.
func sentence(parts ...string) string {
	text := shown(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": "))
	if first, size := utf8.DecodeRuneInString(text); size > 0 {
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	return strings.TrimRight(text, ".") + "."
}

// ended is a sentence about how something ended, with the code last.
func ended(code intents.Code, reason string) string {
	return sentence(code.Info().Title, reason) + " (" + string(code) + ")"
}

// pretty formats a document for people. Its strings hide nothing, and it can be sent back.
func pretty(v any) string {
	raw, isRaw := v.(json.RawMessage)
	if !isRaw {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return ""
		}
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return shown(string(raw))
	}
	return shown(string(visible.JSON(b.Bytes())))
}

// maxExcerpt bounds a document on a page that may have two.
const maxExcerpt = 10_000

// excerpt is a document that a page shows, but does not send back.
func excerpt(v any) string {
	text := pretty(v)
	if len(text) > maxExcerpt {
		text = cut(text, maxExcerpt) + "\nThis is the beginning. A bundle of the record has all of it."
	}
	return text
}

// diffLine is a line of a difference: its kind is added, gone, place or same.
type diffLine struct{ Kind, Text string }

// diff compares two texts; empty: they are the same.
func diff(nameBefore, before, nameNow, now string) (out []diffLine) {
	text := textdiff.Diff(nameBefore, []byte(shown(before)+"\n"), nameNow, []byte(shown(now)+"\n"))
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		kind := "same"
		switch {
		case i == 0:
			continue // the header of the diff command
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
			kind = "place"
		case strings.HasPrefix(line, "+"):
			kind = "added"
		case strings.HasPrefix(line, "-"):
			kind = "gone"
		}
		out = append(out, diffLine{kind, line})
	}
	return out
}
