package logs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
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

	reading sync.Mutex // guards the fields below
	at      cursor     // the last line that was read
	reached int64      // position up to which the record was read last
}

// cursor is how far a follower has come: to a line of the outcome at a position.
type cursor struct {
	At   int64 `json:"at"`
	Line int   `json:"line"` // + 1
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

// read gives the lines that the stream has not told.
func (l *Logs) read(ctx context.Context, s *stream) (reply bus.LogsReply, err error) {
	// The plan first: if it is closed here, all its records are among those that are read.
	doc, err := l.Documents.Get(ctx, s.tenant, storage.IndexPlans, s.plan)
	if err != nil {
		return reply, err
	}
	var plan catalog.PlanView
	if err := json.Unmarshal(doc.Body, &plan); err != nil {
		return reply, err
	}
	s.reached = l.Reached()
	more, err := l.record(ctx, s, &reply)
	if err != nil || more {
		return reply, err
	}
	closed := plan.Status == catalog.PlanComplete || plan.Status == catalog.PlanFailed
	reply.Ended = closed && doc.Position < s.reached
	return reply, nil
}

// record reads lines of the record; more: there are others, for the next answer.
func (l *Logs) record(ctx context.Context, s *stream, reply *bus.LogsReply) (more bool, err error) {
	if store, lags := l.Documents.(storage.Refresher); lags {
		if err := store.Refresh(ctx, storage.IndexEvents); err != nil {
			return false, err
		}
	}
	q := storage.Query{
		Terms:  map[string][]string{"plan_id": {s.plan}, "event_type": {catalog.EventLine}},
		Ranges: map[string]storage.Range{"position": {GTE: strconv.FormatInt(s.at.At, 10), LT: strconv.FormatInt(s.reached, 10)}},
		Limit:  page,
	}
	for len(reply.Lines) < page {
		found, err := l.Documents.Search(ctx, s.tenant, storage.IndexEvents, q)
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
			if doc.Position == s.at.At && e.Payload.N < s.at.Line {
				continue // the last answer ended amid this outcome
			}
			s.at = cursor{doc.Position, e.Payload.N + 1}
			if e.Payload.Matches(s.filter, s.node) {
				raw, _ := json.Marshal(e.Payload) // plain data: its content was JSON
				reply.Lines = append(reply.Lines, bus.LogLine{Line: raw, Cursor: s.at.String()})
			}
		}
		if q.After = found.Cursor; q.After == "" {
			return false, nil
		}
	}
	return true, nil
}
