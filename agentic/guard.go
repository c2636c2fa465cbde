package agentic

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/redact"
	"aob.dev/writ/internal/visible"
)

// unfit matches what no text for a user may contain, whoever wrote it: codes of this system,
// traces of programs, credentials, and invisible characters. A match that is longer than holdBack
// is recognized by its first bytes. Codes of one word are also English words, and stay.
var unfit = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`\b(?:` + strings.Join(compoundCodes(), "|") + `)\b`,
		`goroutine \d{1,12} \[[^\]\n]{1,60}\]:(?s:.*?)(?:\n\n|\z)`,
		`Traceback \(most recent call last\):(?s:.*?)(?:\n\n|\z)`,
		`File "[^"\n]{1,160}", line \d{1,9}`,
		`(?m:^[ \t]{1,16}at [\w.$<>/ ]{0,100}\([^()\n]{1,100}:\d{1,9}\))`,
		strings.Join(redact.Credentials, "|"),
		visible.Class(),
	}, "|"))
})

var compoundCodes = sync.OnceValue(func() (out []string) {
	for _, c := range intents.Codes() {
		if strings.Contains(string(c.Code), "_") {
			out = append(out, string(c.Code))
		}
	}
	return out
})

// guarded returns a text as a user may see it.
func guarded(text string) string {
	fit, _ := guardedFrom(text, 0, true)
	return fit
}

// fitWords replaces a code by words and makes a character visible; it replaces
// everything else with a mark.
func fitWords(found string) string {
	if utf8.RuneCountInString(found) == 1 {
		return visible.Text(found, "")
	}
	if i := intents.Code(found).Info(); string(i.Code) == found {
		return i.Title
	}
	return "[removed]"
}

// guardedFrom returns the part of a streamed text that may be shown after its first shown bytes;
// to is the end of that part. The result does not depend on how the text was cut, and all parts
// together are guarded.
func guardedFrom(text string, shown int, whole bool) (fit string, to int) {
	to = len(text)
	if !whole {
		to = heldFrom(text, shown)
	}
	line := strings.LastIndexByte(text[:shown], '\n') + 1
	var b strings.Builder
	for _, m := range unfit().FindAllStringIndex(text[line:], -1) {
		from, until := line+m[0], line+m[1]
		if from < shown || from >= to || visible.Needed(text, from) {
			continue
		}
		if until > to || !whole && until == len(text) { // its end or its kind is not known yet
			to = from
			break
		}
		b.WriteString(text[shown:from] + fitWords(text[from:until]))
		shown = until
	}
	b.WriteString(text[min(shown, to):to])
	return b.String(), to
}
