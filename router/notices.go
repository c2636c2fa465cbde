package router

import (
	"context"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
)

// Notices are the approvals of all tenants, for those who tell people of them.
type Notices struct{ r *Router }

// Notices returns them.
func (r *Router) Notices() Notices { return Notices{r} }

// Waiting lists those that ask somebody, oldest first, without arguments and summary.
func (n Notices) Waiting() (out []bus.PendingApproval) {
	now := n.r.cfg.Now()
	for _, tenant := range n.r.state.Tenants() {
		for _, h := range n.r.state.Holds(tenant) {
			if at, err := time.Parse(time.RFC3339Nano, h.Terms.Deadline); err == nil && now.Before(at) && h.Terms.Rules[0].ID != intents.RuleUnknownOutcome {
				out = append(out, shown(h))
			}
		}
	}
	return out
}

// Describe says what one does, in a sentence, and who may give it now. What its rules mask is not
// in the sentence.
func (n Notices) Describe(ctx context.Context, w bus.PendingApproval) (sentence string, users, roles []string, err error) {
	for _, h := range n.r.state.Holds(w.TenantID) {
		if h.Position != w.Position {
			continue
		}
		if w.Args, err = n.r.shownArgs(ctx, h); err != nil {
			return "", nil, nil, err
		}
		users, roles = n.r.state.Directory().Deciders(h)
		return n.r.sentence(w), users, roles, nil
	}
	return "", nil, nil, nil // decided meanwhile
}
