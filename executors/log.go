package executors

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"aob.dev/writ/intents"
)

// LogChunk is published by an executor on bus.Log(<executor>) while it executes an intent: lines of
// one attempt, in order and without gaps. Nobody replies, and losing it does no harm, since the
// report has all lines. The ticket, sent with the first line, names the intent; without it the
// lines are ignored.
type LogChunk struct {
	Position int64          `json:"position"` // of the intent
	Attempt  int            `json:"attempt"`
	Ticket   string         `json:"ticket,omitempty"`
	First    int            `json:"first"` // number of the first line, from 0
	Lines    []intents.Line `json:"lines,omitempty"`
	Ended    bool           `json:"over,omitempty"` // the attempt has ended: its report has all lines
}

// lineTime is how long lines are gathered before they are published.
const lineTime = 100 * time.Millisecond

// lineLog collects the lines written during one attempt at an intent.
type lineLog struct {
	publish func(LogChunk) // nil: nobody follows
	header  LogChunk       // common to all chunks of the intent
	now     func() time.Time
	kept    bool // false: a policy masks the result

	mu     sync.Mutex // guards the fields below
	lines  intents.Lines
	sent   int
	timer  *time.Timer // nil: nothing is to be published
	closed bool
}

// Write records one line: level, source, text and, for a message that is not text, data. Lines
// after the handler's end, or beyond the limits of package intents, are dropped. Safe for
// concurrent use.
func (o *Intent) Write(level intents.Level, source, text string, data json.RawMessage) {
	if l := o.log; l != nil && l.kept {
		l.write(intents.Line{At: l.now(), Level: level, Source: source, Text: text, Data: data})
	}
}

func (l *lineLog) write(x intents.Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !l.lines.Add(x) || l.publish == nil {
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(lineTime, l.flush)
	}
}

// flush publishes the collected lines.
func (l *lineLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if all := l.lines.Kept(); !l.closed && len(all) > l.sent {
		l.header.First, l.header.Lines = l.sent, all[l.sent:]
		l.publish(l.header)
		l.header.Ticket, l.sent = "", len(all)
	}
}

// end returns all lines. Nothing is published after it: the report has the rest.
func (l *lineLog) end() []intents.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.timer != nil {
		l.timer.Stop()
	}
	if l.sent > 0 {
		l.publish(LogChunk{Position: l.header.Position, Attempt: l.header.Attempt, Ended: true})
	}
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
