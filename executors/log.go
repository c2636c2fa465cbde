package executors

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"aob.dev/writ/intents"
)

// Written is what an executor publishes on bus.Log(<executor>) while it carries an order out:
// lines of one attempt, in order and without holes. Nobody answers it, and losing it does no
// harm, since the report has all lines. The ticket, which comes with the first line, says of
// which order they are; without it they do not count.
type Written struct {
	Position int64          `json:"position"` // of the order
	Attempt  int            `json:"attempt"`
	Ticket   string         `json:"ticket,omitempty"`
	First    int            `json:"first"` // number of the first line, from 0
	Lines    []intents.Line `json:"lines,omitempty"`
	Over     bool           `json:"over,omitempty"` // the attempt has ended: its report has all lines
}

// lineTime is how long lines are gathered before they are published.
const lineTime = 100 * time.Millisecond

// lineLog gathers what is written during one attempt at an order.
type lineLog struct {
	publish func(Written) // nil: nobody follows
	of      Written       // what all that is published says of its order
	now     func() time.Time
	kept    bool // false: a policy masks the result

	mu     sync.Mutex // guards what follows
	lines  intents.Lines
	sent   int
	timer  *time.Timer // nil: nothing is to be published
	closed bool
}

// Write notes one line: level, where it comes from, text and, of a message that is no text,
// data. What comes after the handler's end, or beyond the limits of package intents, is left
// out. Safe for concurrent use.
func (o *Order) Write(level intents.Level, source, text string, data json.RawMessage) {
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

// flush publishes what has been gathered.
func (l *lineLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if all := l.lines.Kept(); !l.closed && len(all) > l.sent {
		l.of.First, l.of.Lines = l.sent, all[l.sent:]
		l.publish(l.of)
		l.of.Ticket, l.sent = "", len(all)
	}
}

// end gives all lines. Nothing is published any more: the report says the rest.
func (l *lineLog) end() []intents.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.timer != nil {
		l.timer.Stop()
	}
	if l.sent > 0 {
		l.publish(Written{Position: l.of.Position, Attempt: l.of.Attempt, Over: true})
	}
	return l.lines.All(l.now())
}

// LineWriter makes lines of what is written to it. For one goroutine.
type LineWriter struct {
	order  *Order
	level  intents.Level
	source string
	rest   []byte // of a line that has not ended
	over   bool   // the present line is too long: what follows of it is dropped
}

// NewLineWriter writes lines of an order.
func NewLineWriter(o *Order, level intents.Level, source string) *LineWriter {
	return &LineWriter{order: o, level: level, source: source}
}

// Write implements io.Writer.
func (w *LineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		if !w.over {
			w.rest = append(w.rest, line[:min(len(line), intents.MaxLine+1-len(w.rest))]...)
			w.over = len(w.rest) > intents.MaxLine
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
		w.order.Write(w.level, w.source, string(bytes.TrimRight(w.rest, "\r")), nil)
	}
	w.rest, w.over = w.rest[:0], false
}
