package recorder

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// writeIndex makes an intent findable by its intent_id. An intent that was also refused, before or
// after, has several records: the index has the accepted one, else the first refusal. held is the
// intent that an approval is about.
func (r *Recorder) writeIndex(s state.Intent, held string) error {
	body, err := json.Marshal(catalog.IntentEntry{
		IntentID: s.Decision.IntentID, Position: s.Position, TenantID: s.Tenant, UserID: s.User, Type: s.Type,
		Code: string(s.Decision.Code), Verdict: string(s.Decision.Verdict), KID: s.KID, Role: string(s.Signer), PlanID: s.Context.PlanID,
		SessionID: s.Context.SessionID, At: s.At.UTC().Format(time.RFC3339Nano),
		Skill: s.Skill, Held: held,
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
