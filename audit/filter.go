package audit

import (
	"bytes"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Filter chooses records; empty members choose all. User, type, plan and
// session belong to intents: if one is set, no other record matches.
type Filter struct {
	Tenant, User, Type, Plan, Session string

	Code  intents.Code
	Kind  storage.Kind
	Since time.Time // from then on
	Until time.Time // before
	Words []string  // each occurs in a part of the record or in its intent_id, in upper or lower case
}

// Wants reports that a record fits.
func (f Filter) Wants(s RecordView) bool {
	fits := func(want, have string) bool { return want == "" || want == have }
	return fits(f.Tenant, s.Tenant) && fits(f.User, s.User) && fits(f.Type, s.Type) && fits(f.Plan, s.Plan) && fits(f.Session, s.Session) &&
		fits(string(f.Code), string(s.Code)) && fits(string(f.Kind), string(s.Kind)) && f.inTime(s.At) && f.holds(s)
}

func (f Filter) inTime(text string) bool {
	if f.Since.IsZero() && f.Until.IsZero() {
		return true
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && !at.Before(f.Since) && (f.Until.IsZero() || at.Before(f.Until))
}

func (f Filter) holds(s RecordView) bool {
	for _, word := range f.Words {
		lower := []byte(strings.ToLower(word))
		found := strings.Contains(strings.ToLower(s.IntentID), string(lower))
		for _, part := range s.Parts {
			found = found || bytes.Contains(bytes.ToLower(part), lower)
		}
		if !found {
			return false
		}
	}
	return true
}
