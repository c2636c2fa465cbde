package router

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Summary is what projections and reads need of an order record.
type Summary struct {
	IntentID, Tenant, User, Type, TraceID string
	Role                                  intents.Role
	KID                                   string
	Skill                                 string // that the decision was about; empty: none
	Context                               intents.Context
	Args                                  json.RawMessage
	Decision                              intents.Decision
	At                                    time.Time
	Position                              int64
}

// Summarize reads an order record.
func Summarize(r storage.Record) (Summary, error) {
	o, err := readDecided(r)
	if err != nil {
		return Summary{}, err
	}
	return Summary{
		IntentID: o.decision.IntentID, Tenant: o.tenant, User: o.user, Type: o.typ, TraceID: o.trace, Role: o.role, KID: o.kid, Skill: o.skill,
		Context: o.ctx, Args: o.args, Decision: o.decision, At: o.at, Position: o.position,
	}, nil
}

// OutcomeOf reads an outcome record; of is the position of its order, which for
// an order of the router stands right before its outcome.
func OutcomeOf(r storage.Record) (out intents.Outcome, of int64, err error) {
	if out, err = r.Outcome(); err != nil {
		return out, 0, err
	}
	if out.Of < 0 {
		out.Of = r.Position - 1
	}
	return out, out.Of, nil
}

// EntryOf is a record as the fold wants it, for folds other than the router's own.
func EntryOf(rec storage.Record) storage.Entry {
	e := storage.Entry{Record: rec, Of: storage.Nobody}
	if rec.Kind == storage.KindOutcome {
		if _, of, err := OutcomeOf(rec); err == nil {
			e.Of = of
		}
	}
	return e
}
