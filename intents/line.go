package intents

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Line is what a script or a skill server wrote while an order was carried out. Lines are a
// part of the outcome's record of their own: they may hold values of the data.
type Line struct {
	At     time.Time       `json:"ts"`
	Level  Level           `json:"level"`
	Source string          `json:"source"` // such as python:stderr, or <server>:progress
	Text   string          `json:"text"`
	Data   json.RawMessage `json:"data,omitempty"` // of a message that is no text
}

// Level of a line.
type Level string

// The levels.
const (
	LevelDebug   Level = "debug"
	LevelInfo    Level = "info"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// What one attempt at an order may write. The line that says that others were left out
// comes on top.
const (
	MaxLines     = 200
	MaxLine      = 1024     // bytes of a text, and of data
	MaxLineBytes = 32 << 10 // of all texts and data
)

// SourceWrit is the source of what writ itself says in a log.
const SourceWrit = "writ"

// Lines counts what one attempt writes and says what there is room for.
type Lines struct {
	kept    []Line
	bytes   int
	leftOut int
}

// Add keeps a line, in the form that a record has, if there is room for it.
func (l *Lines) Add(x Line) bool {
	x = x.bounded()
	l.bytes += len(x.Text) + len(x.Data)
	if len(l.kept) == MaxLines || l.bytes > MaxLineBytes {
		l.bytes, l.leftOut = MaxLineBytes, l.leftOut+1 // what comes is left out, too: a log with holes in it would mislead
		return false
	}
	l.kept = append(l.kept, x)
	return true
}

// Kept are the lines for which there was room. Do not modify.
func (l *Lines) Kept() []Line { return l.kept }

// All are the kept ones and, where others were left out, one that says so.
func (l *Lines) All(now time.Time) []Line {
	if l.leftOut == 0 {
		return l.kept
	}
	return append(slices.Clip(l.kept), Line{At: now.UTC(), Level: LevelWarning, Source: SourceWrit, Text: strconv.Itoa(l.leftOut) + " more lines were left out"})
}

func (x Line) bounded() Line {
	if !slices.Contains([]Level{LevelDebug, LevelInfo, LevelWarning, LevelError}, x.Level) {
		x.Level = LevelInfo
	}
	if len(x.Data) > MaxLine || x.Data != nil && Unambiguous(x.Data) != nil {
		x.Data = nil
	}
	x.At, x.Source, x.Text = x.At.UTC(), printable(x.Source, 128), printable(x.Text, MaxLine)
	return x
}

// printable is a text in one line, with control characters escaped, cut after so many bytes.
func printable(s string, limit int) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		part := string(r)
		switch {
		case r == '\n' || r == '\t':
			part = " "
		case !strconv.IsPrint(r):
			q := strconv.QuoteRuneToASCII(r)
			part = q[1 : len(q)-1]
		}
		if b.Len()+len(part) > limit-utf8.UTFMax {
			return b.String() + "…"
		}
		b.WriteString(part)
	}
	return b.String()
}

// Bounded are the lines that a record takes of an executor's report. Those of an executor of
// somebody else (x-<name>) come from it, whatever they say: only writ speaks as writ.
func Bounded(executor string, lines []Line) []Line {
	out, size := make([]Line, 0, len(lines)), 0
	for _, x := range lines[:min(len(lines), MaxLines+1)] { // with the one that says that others were left out
		if own := executor + ":"; strings.HasPrefix(executor, "x-") && !strings.HasPrefix(x.Source, own) {
			x.Source = own + x.Source
		}
		x = x.bounded()
		if size += len(x.Text) + len(x.Data); size > MaxLineBytes+MaxLine {
			break
		}
		out = append(out, x)
	}
	return out
}

// Keepable says whether lines of an order are kept: not where a policy masks its result,
// since nobody can find in free text what is to be masked.
func Keepable(obligations []Obligation) bool {
	return !slices.ContainsFunc(obligations, func(o Obligation) bool { return o.Name == "mask" })
}
