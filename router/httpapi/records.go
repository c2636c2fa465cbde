package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// indexWait is how long a read waits for the recorder to reach what was durable when it began, and
// indexRetry when to ask again after that.
const (
	indexWait  = 10 * time.Second
	indexRetry = 2 * time.Second
)

// intent reads the intent of the path. Another tenant's intent does not exist for the reader, nor
// does another user's without audit:read.
func (v *visitor) intent() (*intents.Answer, error) {
	id := v.Param("id")
	v.line.Subject, v.line.Own = catalog.SubjectIntent(id), false
	entry, err := v.find(v.Request.Context(), id)
	if err == nil {
		var t router.Thing
		if t, err = v.s.intentThing(v.Request.Context(), entry); err == nil {
			err = v.sees(t, catalog.SubjectIntent(id))
		}
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil, problem.New(intents.NotFound, "", "no such intent")
	}
	if err != nil {
		return nil, err
	}
	return v.s.cfg.Router.Intent(v.Request.Context(), entry.Position)
}

// intentThing is a recorded intent as the read function decides about it.
func (s *server) intentThing(ctx context.Context, e catalog.IntentEntry) (t router.Thing, err error) {
	t = router.Thing{Owner: e.UserID, Plan: e.PlanID}
	if state.AsksServer(e.Type) {
		t.Skills, err = s.cfg.Router.SkillsOf(ctx, e.Position)
	}
	return t, err
}

// find looks an intent up in the search index, once the index has everything that was durable when
// the read began.
func (v *visitor) find(ctx context.Context, id string) (catalog.IntentEntry, error) {
	var e catalog.IntentEntry
	if err := v.current(); err != nil { //nolint:contextcheck // it waits as long as the request
		return e, err
	}
	ctx, cancel := context.WithTimeout(ctx, indexWait)
	defer cancel()
	doc, err := v.s.cfg.Documents.Get(ctx, v.Grant.Tenant, storage.IndexIntents, id)
	switch {
	case errors.Is(err, storage.ErrUnavailable) || err != nil && ctx.Err() != nil:
		return e, late("the index of intents does not answer: whether there is such an intent is not known now")
	case err != nil:
		return e, err
	}
	return e, json.Unmarshal(doc.Body, &e)
}

// late refuses a read that may be answered in a moment.
func late(reason string) error {
	x := intents.Refuse(intents.Overloaded, "", reason)
	x.RetryAfter, x.Hint = indexRetry, "ask again after Retry-After; if it fails again, writ doctor says why the recorder is behind"
	return x
}

// receipt is the router's signed statement about an intent. A refused intent has none.
func (v *visitor) receipt() (any, error) {
	a, err := v.intent()
	if err != nil {
		return nil, err
	}
	if a.Receipt == "" {
		return nil, problem.New(intents.NotFound, "", "a refused intent has no receipt")
	}
	return gin.H{"intent_id": a.IntentID, "position": a.Position, "receipt": a.Receipt}, nil
}

// proof shows that an intent's record is in the log: everything needed by a verifier that has
// pinned the root key, and nothing of the intent itself. An intent that was committed just now is
// in the next checkpoint.
func (v *visitor) proof() (any, error) {
	a, err := v.intent()
	if err != nil {
		return nil, err
	}
	doc, published, err := v.s.cfg.Ledger.Proof(v.Request.Context(), *a.Position)
	if err != nil {
		return nil, fmt.Errorf("proof of position %d: %w", *a.Position, err)
	}
	if !published {
		v.Header("Retry-After", "1")
		return nil, problem.New(intents.InFlight, "", "the record is in the next checkpoint")
	}
	return gin.H{"intent_id": a.IntentID, "receipt": a.Receipt, "inclusion": doc, "keys": v.s.cfg.State.JWKS()}, nil
}
