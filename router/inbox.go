package router

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus"
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
	for _, h := range r.dir.inbox(g) {
		if (before >= 0 && h.Position >= before) || (q.IntentID != "" && h.IntentID != q.IntentID) || (q.Mine && !h.Mine) || (q.Type != "" && h.Type != q.Type) {
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, h.Deadline); err != nil || !now.Before(at) {
			continue // over; its outcome comes
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
func (d *Directory) inbox(g intents.Grant) []bus.HeldOrder {
	d.mu.RLock()
	defer d.mu.RUnlock()
	roles, disabled := d.rolesNow(g.Tenant, g.Subject, intents.KeyOfClient(g.Act.Client), g.Roles)
	if disabled {
		return nil
	}
	var caps []string
	for _, role := range roles {
		caps = append(caps, d.tenants[g.Tenant].roles[role]...)
	}
	approver := covered(caps, capabilityApprove)
	reader := intents.Approver{User: g.Subject, Key: intents.KeyOfClient(g.Act.Client), Roles: roles}
	v := d.View()
	var out []bus.HeldOrder
	for _, h := range d.holds.waiting {
		if h.tenant != g.Tenant || !g.Serves(h.ctx) {
			continue
		}
		w := v.waiting(h)
		shown := w.shown()
		shown.Mine = h.user == g.Subject
		shown.MayDecide = approver && slices.ContainsFunc(h.terms.Rules, func(r intents.HoldRule) bool { return r.Accepts(reader, w.asked) })
		if shown.Mine || shown.MayDecide {
			out = append(out, shown)
		}
	}
	slices.SortFunc(out, func(a, b bus.HeldOrder) int { return int(b.Position - a.Position) })
	return out
}

// shown is a held order as people see it.
func (w waiting) shown() bus.HeldOrder {
	out := bus.HeldOrder{
		IntentID: w.decision.IntentID, Position: w.position, TenantID: w.tenant, UserID: w.user, Type: w.typ, Args: w.args,
		PlanID: w.ctx.PlanID, Step: w.ctx.Step, Reason: w.decision.Reason, Rules: []bus.HeldRule{}, Approved: []bus.Approved{},
		HeldAt: intents.FormatTime(w.at), Deadline: w.terms.Deadline, URL: bus.ApprovalURL(w.decision.IntentID),
	}
	for _, rule := range w.terms.Rules {
		out.Rules = append(out.Rules, bus.HeldRule{
			ID: rule.ID, Reason: rule.Reason, Approvers: rule.Approvers, Roles: rule.Roles, Count: rule.Needed(),
			FourEyes: rule.FourEyes, Satisfied: rule.Satisfied(w.by, w.asked),
		})
		out.Args = intents.Mask(out.Args, rule.Mask)
	}
	for _, a := range w.by {
		out.Approved = append(out.Approved, bus.Approved{UserID: a.UserID, At: a.At})
	}
	return out
}

// Reader verifies the grant of a read. Its roles are those of the grant that API
// key and user row still give: who lost one yesterday, or a minute ago, does not
// read with it until the grant ends. What the grant serves (intents.Grant.Serves)
// is all that its bearer may be shown.
func (r *Router) Reader(token string) (intents.Grant, error) {
	v := r.dir.View()
	g, err := intents.OpenGrant(token, r.dir.Origin(), v, r.cfg.Now())
	if err != nil {
		return g, err
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

// serveApprovals answers the gateway for a user whose grant comes along.
func (r *Router) serveApprovals(ctx context.Context, data []byte) []byte {
	var q bus.ApprovalsRequest
	if err := json.Unmarshal(data, &q); err != nil {
		return r.reply(bus.ApprovalsReply{Code: string(intents.SchemaInvalid), Reason: "not a question for approvals"})
	}
	g, err := r.Reader(q.Grant)
	var out bus.ApprovalsReply
	if err == nil {
		out, err = r.Inbox(g, q)
	}
	var refusal *intents.Refusal
	switch {
	case errors.As(err, &refusal):
		out = bus.ApprovalsReply{Code: string(refusal.Code), Reason: refusal.Reason}
	case err != nil:
		r.cfg.Log.ErrorContext(ctx, "approvals", slog.String("error", err.Error()))
		out = bus.ApprovalsReply{Code: string(intents.Internal)}
	}
	return r.reply(out)
}
