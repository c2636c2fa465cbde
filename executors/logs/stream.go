package logs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// page is how many lines one answer has at most, about.
const page = 200

// stream is the state of one follower: its filters and how far it has read.
type stream struct {
	tenant, user, client string
	plan, filter, node   string
	requested            time.Time

	opened bool      // this and until are guarded by Logs.mu
	until  time.Time // of the address; once it is open, of the stream

	reading   sync.Mutex     // guards the fields below
	floor     cursor         // lines that the follower has from an earlier stream
	at        int64          // outcomes before this position have been read
	last      int            // the line of the outcome at that position that was read last, + 1
	liveMarks map[int64]mark // lines sent before their intent's outcome, by position of the intent
	done      map[int64]bool // intents whose outcome has been read
	watermark watermark
}

// watermark is the state of record and live lines at the last read of the stream.
type watermark struct {
	reached int64
	version int
}

// mark is the last line of an intent that was sent.
type mark struct {
	Attempt int `json:"a"`
	N       int `json:"n"`
}

func (m mark) covers(l catalog.LogLine) bool {
	return l.Attempt < m.Attempt || l.Attempt == m.Attempt && l.N <= m.N
}

// cursor is how far a follower has come: in the record to a line of the outcome at a position,
// and beyond it to lines of open intents.
type cursor struct {
	At   int64          `json:"at"`
	Line int            `json:"line"` // + 1
	Live map[int64]mark `json:"live,omitempty"`
}

// maxCursor bounds a cursor in bytes.
const maxCursor = 8 << 10

func (c cursor) String() string {
	raw, _ := json.Marshal(c) // plain data
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil || len(text) > maxCursor || c.At < 0 {
		return c, intents.Refuse(intents.SchemaInvalid, "/after", "is not the cursor of a line")
	}
	return c, nil
}

// changed reports whether there may be lines since the last read.
func (l *Logs) changed(s *stream) bool {
	l.live.mu.Lock()
	version := l.live.version
	l.live.mu.Unlock()
	return s.watermark != watermark{l.Reached(), version}
}

// read gives the lines that the stream has not told: those of the record, then those of open
// intents.
func (l *Logs) read(ctx context.Context, s *stream) (bus.LogsReply, error) {
	// The plan first: if it is closed here, all its records are among those that are read.
	doc, err := l.Documents.Get(ctx, s.tenant, storage.IndexPlans, s.plan)
	if err != nil {
		return bus.LogsReply{}, err
	}
	var plan catalog.PlanView
	if err := json.Unmarshal(doc.Body, &plan); err != nil {
		return bus.LogsReply{}, err
	}
	open, version := l.live.running(s.tenant, s.plan)
	s.watermark = watermark{l.Reached(), version}
	r := reader{s: s}
	more, err := l.record(ctx, &r)
	if err != nil || more {
		return r.reply, err
	}
	for _, of := range slices.Sorted(maps.Keys(open)) {
		r.live(of, open[of], plan)
	}
	r.reply.Ended = plan.Status.Ended() && doc.Position < s.watermark.reached
	return r.reply, nil
}

// record reads lines of the record; more: there are others, for the next answer.
func (l *Logs) record(ctx context.Context, r *reader) (more bool, err error) {
	if store, lags := l.Documents.(storage.Refresher); lags {
		if err := store.Refresh(ctx, storage.IndexEvents); err != nil {
			return false, err
		}
	}
	q := storage.Query{
		Terms:  map[string][]string{"plan_id": {r.s.plan}, "event_type": {catalog.EventLine}},
		Ranges: map[string]storage.Range{"position": {GTE: strconv.FormatInt(r.s.at, 10), LT: strconv.FormatInt(r.s.watermark.reached, 10)}},
		Limit:  page,
	}
	for len(r.reply.Lines) < page {
		found, err := l.Documents.Search(ctx, r.s.tenant, storage.IndexEvents, q)
		if err != nil {
			return false, err
		}
		for _, doc := range found.Documents {
			var e struct {
				Payload catalog.LogLine `json:"payload"`
			}
			if err := json.Unmarshal(doc.Body, &e); err != nil {
				return false, fmt.Errorf("event %s: %w", doc.ID, err)
			}
			r.recorded(doc.Position, e.Payload)
		}
		if q.After = found.Cursor; q.After == "" {
			return false, nil
		}
	}
	return true, nil
}

// reader makes one answer.
type reader struct {
	s     *stream
	reply bus.LogsReply
}

// recorded takes the next line of the record.
func (r *reader) recorded(position int64, line catalog.LogLine) {
	s := r.s
	if position == s.at && line.N < s.last {
		return // the last answer ended amid this outcome
	}
	s.at, s.last = position, line.N+1
	s.done[line.Target] = true
	had := position < s.floor.At || position == s.floor.At && line.N < s.floor.Line
	if m, told := s.liveMarks[line.Target]; !had && !(told && m.covers(line)) {
		r.add(line)
	}
}

// live adds the lines of an open intent.
func (r *reader) live(of int64, w writing, plan catalog.PlanView) {
	if r.s.done[of] {
		return
	}
	node := ""
	for i := range plan.Steps {
		if plan.Steps[i].Step == w.step {
			node = plan.Steps[i].ID
		}
	}
	for n, text := range w.lines {
		line := catalog.LogLine{Line: text, PlanID: plan.PlanID, NodeID: node, Step: w.step, Target: of, Attempt: w.attempt, N: n}
		if m, told := r.s.liveMarks[of]; told && m.covers(line) {
			continue
		}
		r.s.liveMarks[of] = mark{line.Attempt, n}
		r.add(line)
	}
}

// add adds a line, if it passes the filters.
func (r *reader) add(line catalog.LogLine) {
	s := r.s
	if !line.Matches(s.filter, s.node) {
		return
	}
	at := cursor{At: max(s.at, s.floor.At), Line: s.last}
	if s.at < s.floor.At {
		at.Line = s.floor.Line
	}
	for of, m := range s.liveMarks {
		if !s.done[of] || of == line.Target {
			if at.Live == nil {
				at.Live = map[int64]mark{}
			}
			at.Live[of] = m
		}
	}
	raw, _ := json.Marshal(line) // plain data: its content was JSON
	r.reply.Lines = append(r.reply.Lines, bus.LogLine{Line: raw, Cursor: at.String()})
}
