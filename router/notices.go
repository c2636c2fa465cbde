package router

import (
	"context"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
)

// Notices are the approvals of all tenants, for those who tell people of them.
type Notices struct{ r *Router }

// Notices returns them.
func (r *Router) Notices() Notices { return Notices{r} }

// Waiting lists those that ask somebody, oldest first, without arguments and summary, and without what
// counts now.
func (n Notices) Waiting() (out []bus.PendingApproval) {
	now := n.r.cfg.Now()
	for _, h := range n.r.state.WaitingHolds() {
		if now.Before(h.Deadline) && h.Terms.Rules[0].ID != intents.RuleUnknownOutcome {
			out = append(out, bus.PendingApproval{
				IntentID: h.Decision.IntentID, Position: h.Position, TenantID: h.Tenant, UserID: h.User, Type: h.Type,
				PendingSince: intents.FormatTime(h.At), Deadline: h.Terms.Deadline,
			})
		}
	}
	return out
}

// Describe says what one does, in a sentence, and who may give it now. What its rules mask is not
// in the sentence.
func (n Notices) Describe(ctx context.Context, w bus.PendingApproval) (sentence string, users, roles []string, err error) {
	h, ok := n.r.state.WaitingHold(w.TenantID, w.IntentID)
	if !ok {
		return "", nil, nil, nil // decided meanwhile
	}
	p := shown(h)
	if p.Args, err = n.r.shownArgs(ctx, h); err != nil {
		return "", nil, nil, err
	}
	users, roles = n.r.state.Directory().Deciders(h)
	return n.r.sentence(p), users, roles, nil
}
