package recorder

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Entry is one intent in the search index (agent_intents).
type Entry struct {
	IntentID  string `json:"intent_id"`
	Position  int64  `json:"position"`
	TenantID  string `json:"tenant_id"`
	UserID    string `json:"user_id"`
	Type      string `json:"type"`
	Code      string `json:"code"`
	Verdict   string `json:"verdict"`
	KID       string `json:"kid"`
	Role      string `json:"role"`
	PlanID    string `json:"plan_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	At        string `json:"at"`
}

// writeIndex makes an intent findable by its intent_id. An intent that was also refused, before or
// after, has several records: the index has the accepted one, else the first refusal.
func (r *Recorder) writeIndex(s state.Intent) error {
	body, err := json.Marshal(Entry{
		IntentID: s.Decision.IntentID, Position: s.Position, TenantID: s.Tenant, UserID: s.User, Type: s.Type,
		Code: string(s.Decision.Code), Verdict: string(s.Decision.Verdict), KID: s.KID, Role: string(s.Signer), PlanID: s.Context.PlanID,
		SessionID: s.Context.SessionID, At: s.At.UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return err
	}
	doc := storage.Document{ID: s.Decision.IntentID, Position: s.Position, Body: body}
	if s.Decision.Verdict == intents.Deny {
		r.batch.refuse(place{s.Tenant, s.Decision.IntentID}, doc)
	} else {
		r.batch.intents[place{s.Tenant, s.Decision.IntentID}] = doc
	}
	return nil
}
