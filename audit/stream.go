package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/internal/notify"
	"aob.dev/writ/storage"
)

// StreamRecord is a record as a stream sends it: who did what, and what was decided. Arguments and
// results are not in it.
type StreamRecord struct {
	Position  int64           `json:"position"`
	Kind      storage.Kind    `json:"kind"`
	At        string          `json:"at"` // RFC 3339
	Tenant    string          `json:"tenant_id"`
	IntentID  string          `json:"intent_id,omitempty"`
	Type      string          `json:"type,omitempty"`
	User      string          `json:"user_id,omitempty"`
	Plan      string          `json:"plan_id,omitempty"`
	Session   string          `json:"session_id,omitempty"`
	Verdict   intents.Verdict `json:"verdict,omitempty"`
	Code      intents.Code    `json:"code,omitempty"`
	PolicyIDs []string        `json:"policy_ids,omitempty"` // of rules that denied or held
	Of        *int64          `json:"of,omitempty"`         // position of the intent that it is about
	Digest    string          `json:"record_digest"`
}

// StreamBatch is one message of a stream.
type StreamBatch struct {
	Origin  string         `json:"origin"` // of the log
	From    int64          `json:"from"`   // position of the first record
	Next    int64          `json:"next"`   // position after the last
	Records []StreamRecord `json:"records"`
}

// Stream sends every record to a receiver, in the order of the log and from its beginning on, at
// least once. One that is not taken is sent again, and nothing after it before.
//
// Crash: how far it has come is stored after the receiver has taken a batch. A crash between the two
// sends those records again.
type Stream struct {
	Origin   string
	Records  storage.Records
	Receiver notify.Receiver
	Store    durable.Store     // of how far it has come
	Progress *storage.Progress // woken by new records
	Log      *slog.Logger
	// Failing is called with the error of a receiver that takes nothing, and with nil when it does.
	Failing func(err error)
}

const (
	streamBatch = 200 // records
	firstWait   = time.Second
	longestWait = time.Minute
)

// cursor is what the store has.
type cursor struct {
	Next int64 `json:"next"`
}

// Run sends until ctx ends. What fails is tried again.
func (s *Stream) Run(ctx context.Context) error {
	next, wait := int64(-1), firstWait
	for {
		before := next
		var err error
		if next < 0 {
			next, err = s.begin(ctx)
		} else {
			next, err = s.send(ctx, next)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // ctx has ended
		case err != nil:
			if wait == firstWait {
				s.Log.WarnContext(ctx, "the record is not streamed; writ tries again", slog.Int64("position", next), slog.String("error", err.Error()))
			}
			s.Failing(err)
			if clock.Sleep(ctx, wait) != nil {
				return nil //nolint:nilerr // likewise
			}
			wait = min(2*wait, longestWait)
			continue
		case wait > firstWait:
			s.Failing(nil)
			wait = firstWait
		}
		if next == before {
			s.Progress.Move(next)
			if s.Progress.Gather(ctx) != nil {
				return nil //nolint:nilerr // likewise
			}
		}
	}
}

// begin reads how far it has come.
func (s *Stream) begin(ctx context.Context) (int64, error) {
	var at cursor
	doc, err := s.Store.Get(ctx)
	if err == nil && doc != nil {
		err = json.Unmarshal(doc, &at)
	}
	if err != nil {
		return -1, fmt.Errorf("audit_stream: how far it has come: %w", err)
	}
	return at.Next, nil
}

// send sends the records from a position on, at most streamBatch, and returns the position after
// them.
func (s *Stream) send(ctx context.Context, from int64) (next int64, err error) {
	b := StreamBatch{Origin: s.Origin, From: from, Next: from}
	for view, err := range Read(ctx, s.Records, from) {
		if err != nil {
			return from, err
		}
		one, err := streamed(view)
		if err != nil {
			return from, err
		}
		b.Records, b.Next = append(b.Records, one), view.Position+1
		if len(b.Records) == streamBatch {
			break
		}
	}
	if len(b.Records) == 0 {
		return from, nil
	}
	if err := s.Receiver.Send(ctx, notify.Message{ID: fmt.Sprintf("%d-%d", b.From, b.Next), Data: b}); err != nil {
		return from, err
	}
	failpoint.Hit(failpoint.StreamSent)
	doc, err := json.Marshal(cursor{b.Next})
	if err == nil {
		err = s.Store.Put(ctx, doc)
	}
	if err != nil {
		return from, err
	}
	return b.Next, nil
}

func streamed(v RecordView) (StreamRecord, error) {
	out := StreamRecord{
		Position: v.Position, Kind: v.Kind, At: v.At, Tenant: v.Tenant, IntentID: v.IntentID, Type: v.Type, User: v.User, Plan: v.Plan, Session: v.Session,
		Code: v.Code, Of: v.Target, Digest: v.Digest,
	}
	if raw := v.Parts[storage.PartDecision]; raw != nil && v.Intent != nil {
		d, err := intents.ReadDecision(raw)
		if err != nil {
			return out, fmt.Errorf("record %d: %w", v.Position, err)
		}
		out.Verdict, out.PolicyIDs = d.Verdict, d.PolicyIDs
	}
	return out, nil
}
