package console

import (
	"context"
	"net/http"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/health"
)

// standing is what every page shows beside its own content.
type standing struct {
	Waiting int                // approvals that the person may give, up to a hundred
	Wrong   []health.Condition // of this process
	Stops   []catalog.StopOf   // that stand in the tenant
	MayStop bool               // and resume
}

// standing asks for it. What cannot be had is left out: the page itself says why.
func (c *Console) standing(ctx context.Context, s *session) (out standing) {
	if s == nil {
		return out
	}
	out.Waiting = len(c.waiting(ctx, s))
	out.Stops, _ = s.now()
	out.MayStop = c.ask(ctx, s.credentials, http.MethodGet, "/v1/me?capability="+catalog.CapabilityStop, nil, nil) == nil
	var ready struct{ Conditions []health.Condition }
	if c.ask(ctx, s.credentials, http.MethodGet, "/readyz", nil, &ready) == nil {
		out.Wrong = ready.Conditions
	}
	return out
}

// waiting lists the approvals that a person may give.
func (c *Console) waiting(ctx context.Context, s *session) (ids []string) {
	var inbox bus.ApprovalsReply
	if c.ask(ctx, s.credentials, http.MethodGet, "/agent/approvals?limit=100&brief=true", nil, &inbox) != nil {
		return nil
	}
	for _, a := range inbox.Approvals {
		if a.MayDecide {
			ids = append(ids, a.IntentID)
		}
	}
	return ids
}

// home is the first page: the inbox of somebody for whom something waits, else what happens now.
func (c *Console) home(q *request) (any, error) {
	to := "/console/now"
	if len(c.waiting(q.Context(), q.s)) > 0 {
		to = "/console/approvals"
	}
	http.Redirect(q.w, q.Request, c.root+to, http.StatusSeeOther)
	return nil, errDone
}
