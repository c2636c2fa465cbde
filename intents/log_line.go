package intents

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"aob.dev/writ/internal/visible"
)

// Line is what a script or a skill server wrote while an intent was carried out. Lines are a
// separate part of the outcome's record: they may contain values of the data.
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

// Limits of the lines of one attempt at an intent. The line that reports omitted ones
// is extra.
const (
	MaxLines     = 200
	MaxLine      = 1024     // bytes of a text, and of data
	MaxLineBytes = 32 << 10 // of all texts and data
)

// SourceWrit is the source of writ's own lines in a log.
const SourceWrit = "writ"

// Lines counts what one attempt writes and decides what there is room for.
type Lines struct {
	kept    []Line
	bytes   int
	leftOut int
}

// Add retains a line in its recorded form, if there is room for it.
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

// Kept returns the retained lines. Do not modify.
func (l *Lines) Kept() []Line { return l.kept }

// All returns the retained lines and, where others were omitted, one that reports it.
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
	x.At, x.Source, x.Text = x.At.UTC(), visible.Line(x.Source, 128), visible.Line(x.Text, MaxLine)
	return x
}

// BoundLines are the lines of an executor's report that a record accepts. Those of a foreign
// executor (x-<name>) name it as their source, whatever they claim: only writ's own may name writ.
func BoundLines(executor string, lines []Line) []Line {
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

// Keepable reports whether lines of an intent are retained: not where a policy masks or redacts its
// result, since lines have parts of results in forms of their own.
func Keepable(obligations []Obligation) bool {
	return !masks(obligations) && !slices.ContainsFunc(obligations, func(o Obligation) bool { return o.Name == "redact" })
}

func masks(obligations []Obligation) bool {
	return slices.ContainsFunc(obligations, func(o Obligation) bool { return o.Name == "mask" })
}
