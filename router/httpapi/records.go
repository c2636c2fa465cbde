package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// indexWait is how long a read waits for the recorder to reach what was durable when it began.
const indexWait = 2 * time.Second

// get answers with an intent's result.
func (s *server) get(c *gin.Context) error {
	a, err := s.intent(c)
	if err == nil {
		c.JSON(http.StatusOK, a)
	}
	return err
}

// intent reads an intent for the bearer of a grant. Another tenant's intent does not exist for it,
// nor does another user's without audit:read.
func (s *server) intent(c *gin.Context) (*intents.Answer, error) {
	grant, caps, err := s.reader(c)
	if err != nil {
		return nil, err
	}
	entry, err := s.find(c.Request.Context(), grant.Tenant, c.Param("id"))
	if errors.Is(err, storage.ErrNotFound) || (err == nil && !sees(grant, entry, caps, capabilityAudit)) {
		return nil, problem.New(intents.NotFound, "", "no such intent")
	}
	if err != nil {
		return nil, err
	}
	return s.cfg.Router.Intent(c.Request.Context(), entry.Position)
}

// capabilityAudit lets its bearer read all intents of the tenant.
const capabilityAudit = "audit:read"

// sees reports whether the bearer of a grant may see an intent: it is the bearer's own or one that
// any of some capabilities shows.
func sees(g intents.Grant, e recorder.Entry, caps []string, shows ...string) bool {
	return e.UserID == g.Subject || slices.ContainsFunc(shows, func(c string) bool {
		return state.Covers(caps, c)
	})
}

// reader verifies the bearer grant; its capabilities are today's.
func (s *server) reader(c *gin.Context) (intents.Grant, []string, error) {
	token, ok := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
	if !ok {
		return intents.Grant{}, nil, intents.Refuse(intents.Unauthorized, "", "a read carries an API key (X-Api-Key), where the gateway runs too, or a grant (Authorization: Bearer)")
	}
	g, err := s.cfg.Router.Reader(token)
	if err != nil {
		return g, nil, err
	}
	caps, _ := s.cfg.State.View().Capabilities(g.Tenant, g.Roles)
	return g, caps, nil
}

// find looks an intent up in the search index, once the index has everything that was durable when
// the read began.
func (s *server) find(ctx context.Context, tenant, id string) (recorder.Entry, error) {
	var e recorder.Entry
	ctx, cancel := context.WithTimeout(ctx, indexWait)
	defer cancel()
	if err := s.cfg.Recorder.Reach(ctx, s.cfg.State.View().Position()+1); err != nil {
		return e, late("the index of intents is behind the record: whether there is such an intent is not known yet")
	}
	doc, err := s.cfg.Documents.Get(ctx, tenant, storage.IndexIntents, id)
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
	x.RetryAfter, x.Hint = indexWait, "ask again after Retry-After; if that goes on, writ doctor says why the recorder is behind"
	return x
}
