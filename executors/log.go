package executors

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"aob.dev/writ/intents"
)

// lineLog collects the lines written during one attempt at an intent.
type lineLog struct {
	now  func() time.Time
	kept bool // false: a policy masks the result

	mu     sync.Mutex // guards the fields below
	lines  intents.Lines
	closed bool
}

// Write records one line: level, source, text and, for a message that is not text, data. Lines
// after the handler's end, or beyond the limits of package intents, are dropped. Safe for
// concurrent use.
func (o *Intent) Write(level intents.Level, source, text string, data json.RawMessage) {
	l := o.log
	if l == nil || !l.kept {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.lines.Add(intents.Line{At: l.now(), Level: level, Source: source, Text: text, Data: data})
	}
}

// end returns all lines.
func (l *lineLog) end() []intents.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.lines.All(l.now())
}

// LineWriter splits its input into lines. For one goroutine.
type LineWriter struct {
	intent  *Intent
	level   intents.Level
	source  string
	rest    []byte // of a line that has not ended
	tooLong bool   // the current line is too long: its rest is dropped
}

// NewLineWriter writes lines of an intent.
func NewLineWriter(o *Intent, level intents.Level, source string) *LineWriter {
	return &LineWriter{intent: o, level: level, source: source}
}

// Write implements io.Writer.
func (w *LineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		if !w.tooLong {
			w.rest = append(w.rest, line[:min(len(line), intents.MaxLine+1-len(w.rest))]...)
			w.tooLong = len(w.rest) > intents.MaxLine
		}
		if p = rest; ended {
			w.End()
		}
	}
	return n, nil
}

// End ends the present line, if there is one.
func (w *LineWriter) End() {
	if len(w.rest) > 0 {
		w.intent.Write(w.level, w.source, string(bytes.TrimRight(w.rest, "\r")), nil)
	}
	w.rest, w.tooLong = w.rest[:0], false
}
