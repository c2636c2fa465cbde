package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// erased removes what an accepted record.erase names from the documents that were made from the
// intent before: from its plan, at the position of the erasure, and, for an intent of the router,
// from its events; rows of a tool and lines of its log are removed. Other events, rows of calls and
// the search index never have values of an intent. All of it changes the existing documents, since
// the state may have dropped the plan, and has the same result for a record that has lost its
// intent.
func (r *Recorder) erased(ctx context.Context, s state.Intent, rec storage.Record) error {
	if s.Type == state.TypeUserErase {
		return r.eraseUser(ctx, s, rec.Position)
	}
	if s.Type != state.TypeErase {
		return nil
	}
	a, err := state.ArgsOf[catalog.RecordErase](s)
	if err != nil {
		return err
	}
	r.recent = [len(r.recent)]recent{} // it has other parts now
	defer func() { r.residue = true }()
	of, err := r.intent(ctx, a.Position)
	if err != nil {
		return err
	}
	if err := r.flush(ctx); err != nil { // erased reads the store, so what was gathered must be in it
		return err
	}
	if err := errors.Join(r.eraseTools(ctx, of, a.Parts), r.eraseLines(ctx, of, a.Parts)); err != nil || !slices.Contains(a.Parts, catalog.ErasesEnvelope) {
		return err
	}
	routers := of.Decision.Verdict != intents.Deny && of.Decision.Executor == catalog.ExecutorRouter
	if routers {
		if err := r.eraseEvents(ctx, of); err != nil {
			return err
		}
	}
	return r.erasePlan(ctx, of, routers, rec)
}

// ofUsers are the indices whose documents contain words of a user, with the member that names the
// user. Those of the search index and of skill calls have none.
var ofUsers = map[string]string{
	storage.IndexMemory: "user_id", storage.IndexMoments: "user_id", storage.IndexSouls: "user_id", storage.IndexSessions: "user_id",
	storage.IndexMessages: "user_id", storage.IndexPlans: "user_id", storage.IndexEvents: "user_id", storage.IndexRuns: "user_id",
	storage.IndexWorkflows: "user_id", storage.IndexChunks: "reader", storage.IndexConnections: "user_id",
}

// eraseUser removes the documents that a user's intents before a user.erase have written, whoever
// wrote them into the store: every such intent has ended. Repeating it later changes nothing, since
// it leaves what was written by later intents. At last it destroys the key that backups encrypt the user's
// documents under.
//
// Crash: some are gone, and the next round removes the rest.
func (r *Recorder) eraseUser(ctx context.Context, s state.Intent, position int64) error {
	a, err := state.ArgsOf[catalog.UserErase](s)
	if err != nil {
		return err
	}
	r.recent = [len(r.recent)]recent{} // they have other parts now
	defer func() { r.residue = true }()
	if err := r.flush(ctx); err != nil { // what was gathered must be in the store
		return err
	}
	tenant := state.TargetTenant(s.Tenant, a.Tenant)
	for _, index := range slices.Sorted(maps.Keys(ofUsers)) {
		q := storage.Query{Terms: map[string][]string{ofUsers[index]: {a.UserID}}, Before: position}
		if index == storage.IndexConnections { // refreshed tokens are written at positions of their own
			q.Before, q.Ranges = 0, map[string]storage.Range{"position": {LT: strconv.FormatInt(position, 10)}}
		}
		err := r.patiently(ctx, index, func() error {
			if store, lags := r.documents.(storage.Refresher); lags {
				if err := store.Refresh(ctx, index); err != nil {
					return err
				}
			}
			_, err := r.documents.Purge(ctx, tenant, index, q)
			return err
		})
		if err != nil {
			return err
		}
		failpoint.Hit(failpoint.RecorderPurged)
	}
	store, can := r.documents.(storage.UserKeys)
	if !can {
		return nil
	}
	return r.patiently(ctx, storage.IndexMemory, func() error { return store.EraseUserKey(ctx, tenant, a.UserID) })
}

// erasePlan writes the plan of an erased intent again: without any text if the router executed the
// intent, else without the intent's arguments.
func (r *Recorder) erasePlan(ctx context.Context, of state.Intent, routers bool, rec storage.Record) error {
	doc, err := r.read(ctx, of.Tenant, storage.IndexPlans, r.planID(of))
	if err != nil || doc.Body == nil {
		return err
	}
	p := new(catalog.PlanView)
	if err := json.Unmarshal(doc.Body, p); err != nil {
		return err
	}
	if routers {
		state.RemoveTexts(p)
	}
	for i := range p.IntentHistory {
		if f := &p.IntentHistory[i]; f.IntentID == of.Decision.IntentID {
			f.Args = json.RawMessage(`{}`)
		}
	}
	r.writePlan(p, rec)
	return nil
}

// eraseEvents removes the reasons from the events of an intent.
func (r *Recorder) eraseEvents(ctx context.Context, of state.Intent) error {
	for seq := 0; ; seq++ {
		id := eventID(of.Position, seq)
		doc, err := r.read(ctx, of.Tenant, storage.IndexEvents, id)
		if err != nil {
			return err
		}
		spare, err := r.read(ctx, of.Tenant, storage.IndexEvents, id+spareSuffix)
		if err != nil {
			return err
		}
		replaced := spare.Body != nil // as far as a crash let it
		if doc.Body == nil {
			doc = spare
		}
		if doc.Body == nil {
			return nil
		}
		had, err := withoutReasons(&doc)
		if err == nil && (had || replaced) {
			doc.ID = id
			err = r.patiently(ctx, storage.IndexEvents, func() error { return r.replace(ctx, of.Tenant, doc) })
		}
		if err != nil {
			return err
		}
	}
}

// withoutReasons removes the texts of an event, and reports whether it had any.
func withoutReasons(doc *storage.Document) (had bool, err error) {
	var d eventDoc
	if err := json.Unmarshal(doc.Body, &d); err != nil {
		return false, err
	}
	payload, _ := d.Payload.(map[string]any)
	for _, name := range []string{"reason", "suggestion"} {
		if text, ok := payload[name].(string); ok && text != storage.ErasedReason {
			payload[name], had = storage.ErasedReason, true
		}
	}
	doc.Body, err = json.Marshal(d)
	return had, err
}

// spareSuffix is the suffix of the id of an event that is about to replace another.
const spareSuffix = "-erased"

// replace replaces the event that has the same id: events are created and removed, and never
// changed.
//
// Crash: at least one of the two exists, and the next round continues.
func (r *Recorder) replace(ctx context.Context, tenant string, doc storage.Document) error {
	spare := doc
	spare.ID += spareSuffix
	if _, err := r.documents.Create(ctx, tenant, storage.IndexEvents, spare); err != nil {
		return err
	}
	if err := r.documents.Delete(ctx, tenant, storage.IndexEvents, doc.ID); err != nil {
		return err
	}
	if _, err := r.documents.Create(ctx, tenant, storage.IndexEvents, doc); err != nil {
		return err
	}
	return r.documents.Delete(ctx, tenant, storage.IndexEvents, spare.ID)
}

// read returns a document, without a body if there is none.
func (r *Recorder) read(ctx context.Context, tenant, index, id string) (doc storage.Document, err error) {
	if id == "" {
		return doc, nil
	}
	err = r.patiently(ctx, index, func() error {
		doc, err = r.documents.Get(ctx, tenant, index, id)
		if errors.Is(err, storage.ErrNotFound) {
			doc, err = storage.Document{}, nil
		}
		return err
	})
	return doc, err
}

// eventID is the id of the seq-th event of a record.
func eventID(position int64, seq int) string { return fmt.Sprintf("%012d-%02d", position, seq) }
