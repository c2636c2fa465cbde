package router

import (
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/state"
)

// Bounds of a page of the inbox.
const (
	defaultInbox = 20
	maxInbox     = 100
)

// Inbox lists the held orders that somebody may decide and those that they asked
// for themselves, newest first; of another tenant there are none, nor of other work
// than a standing grant is for.
func (r *Router) Inbox(g intents.Grant, q bus.ApprovalsRequest) (bus.ApprovalsReply, error) {
	out := bus.ApprovalsReply{Approvals: []bus.HeldOrder{}}
	before, limit := int64(-1), q.Limit
	if q.After != "" {
		var err error
		if before, err = strconv.ParseInt(q.After, 10, 64); err != nil || before < 0 {
			return out, intents.Refuse(intents.SchemaInvalid, "/after", "not a cursor of the inbox")
		}
	}
	if limit == 0 {
		limit = defaultInbox
	}
	if limit < 1 || limit > maxInbox {
		return out, intents.Refuse(intents.SchemaInvalid, "/limit", "must be 1 to 100")
	}
	now := r.cfg.Now()
	for _, h := range r.inbox(g) {
		if (before >= 0 && h.Position >= before) || (q.IntentID != "" && h.IntentID != q.IntentID) || (q.Mine && !h.Mine) || (q.Type != "" && h.Type != q.Type) {
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, h.Deadline); err != nil || !now.Before(at) {
			continue // over; its outcome comes
		}
		if q.IntentID == "" && h.Rules[0].ID == intents.RuleUnsettled {
			continue // it asks nobody
		}
		if len(out.Approvals) == limit {
			out.Cursor = strconv.FormatInt(out.Approvals[limit-1].Position, 10)
			break
		}
		out.Approvals = append(out.Approvals, h)
	}
	return out, nil
}

// inbox of a grant's user, newest first.
func (r *Router) inbox(g intents.Grant) []bus.HeldOrder {
	dir := r.state.Directory()
	roles, disabled := dir.RolesNow(g.Tenant, g.Subject, intents.KeyOfClient(g.Act.Client), g.Roles)
	if disabled {
		return nil
	}
	caps, _ := dir.Capabilities(g.Tenant, roles)
	approver := state.Covered(intents.CurrentRules, caps, state.CapabilityApprove)
	reader := intents.Approver{User: g.Subject, Key: intents.KeyOfClient(g.Act.Client), Roles: roles}
	var out []bus.HeldOrder
	for _, h := range slices.Backward(r.state.Holds(g.Tenant)) {
		held := shown(h)
		held.Mine = h.User == g.Subject
		held.MayDecide = approver && slices.ContainsFunc(h.Terms.Rules, func(r intents.HoldRule) bool { return r.Accepts(reader, h.Asked) })
		if held.Mine || held.MayDecide {
			out = append(out, held)
		}
	}
	return out
}

// shown is a held order as people see it.
func shown(h state.Hold) bus.HeldOrder {
	out := bus.HeldOrder{
		IntentID: h.Decision.IntentID, Position: h.Position, TenantID: h.Tenant, UserID: h.User, Type: h.Type, Args: h.Args,
		PlanID: h.Context.PlanID, Step: h.Context.Step, Reason: h.Decision.Reason, Rules: []bus.HeldRule{}, Approved: []bus.Approved{},
		HeldAt: intents.FormatTime(h.At), Deadline: h.Terms.Deadline, URL: bus.ApprovalURL(h.Decision.IntentID),
	}
	for _, rule := range h.Terms.Rules {
		out.Rules = append(out.Rules, bus.HeldRule{
			ID: rule.ID, Reason: rule.Reason, Approvers: rule.Approvers, Roles: rule.Roles, Count: rule.Needed(),
			FourEyes: rule.FourEyes, Satisfied: rule.ID != intents.RuleUnsettled && rule.Satisfied(h.By, h.Asked),
		})
		out.Args = intents.Mask(out.Args, rule.Mask)
	}
	for _, a := range h.By {
		out.Approved = append(out.Approved, bus.Approved{UserID: a.UserID, At: a.At})
	}
	return out
}

// Reader verifies the grant of a read. Its roles are those of the grant that API
// key and user row still give: who lost one yesterday, or a minute ago, does not
// read with it until the grant ends. A grant of intents reads nothing.
func (r *Router) Reader(token string) (intents.Grant, error) {
	v := r.state.View()
	g, err := intents.OpenGrant(token, r.state.Origin(), v, r.cfg.Now())
	if err != nil {
		return g, err
	}
	if !g.Reads() {
		return g, intents.Refuse(intents.GrantInvalid, "", "a grant of intents reads nothing: send an API key (X-Api-Key), or the read_grant of POST /v1/grants")
	}
	if before := v.Revoked(g.Tenant, g.Subject); !before.IsZero() && time.Unix(g.IssuedAt, 0).Before(before) {
		return g, intents.Refuse(intents.GrantInvalid, "", "grant is revoked")
	}
	roles, disabled := v.RolesNow(&g)
	if disabled {
		return g, intents.Refuse(intents.RBACForbidden, "", "the user or the API key is not there any more")
	}
	g.Roles = roles
	return g, nil
}

// approvals answers the gateway for a user whose grant comes along.
func (r *Router) approvals(q bus.ApprovalsRequest) bus.ApprovalsReply {
	g, err := r.Reader(q.Grant)
	var out bus.ApprovalsReply
	if err == nil {
		out, err = r.Inbox(g, q)
	}
	var refusal *intents.Refusal
	switch {
	case errors.As(err, &refusal):
		return bus.ApprovalsReply{Code: string(refusal.Code), Reason: refusal.Reason}
	case err != nil:
		r.cfg.Log.Error("approvals", slog.String("error", err.Error()))
		return bus.ApprovalsReply{Code: string(intents.Internal)}
	}
	return out
}
