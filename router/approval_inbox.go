package router

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Bounds of a page of the inbox.
const (
	defaultInbox = 20
	maxInbox     = 100
)

// Inbox lists the pending approvals that the user may decide and those that the user requested,
// newest first. It lists none of another tenant, and none outside the work that a standing grant
// covers.
func (r *Router) Inbox(ctx context.Context, g intents.Grant, q bus.ApprovalsRequest) (bus.ApprovalsReply, error) {
	out := bus.ApprovalsReply{Approvals: []bus.PendingApproval{}}
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
	if q.After == "" && q.IntentID == "" && q.Type == "" {
		out.Standing = r.standing(g, q.Mine, now)
	}
	for _, h := range r.inbox(g) {
		if (before >= 0 && h.Position >= before) || (q.IntentID != "" && h.IntentID != q.IntentID) || (q.Mine && !h.Mine) || (q.Type != "" && h.Type != q.Type) {
			continue
		}
		if at, err := time.Parse(time.RFC3339Nano, h.Deadline); err != nil || !now.Before(at) {
			continue // ended; its outcome follows
		}
		if q.IntentID == "" && h.Rules[0].ID == intents.RuleUnknownOutcome {
			continue // it asks nobody
		}
		if len(out.Approvals) == limit {
			out.Cursor = strconv.FormatInt(out.Approvals[limit-1].Position, 10)
			break
		}
		if !q.Brief {
			var err error
			if h.Args, err = r.shownArgs(ctx, h.hold); err != nil {
				return out, err
			}
			h.Summary = r.sentence(h.PendingApproval)
		}
		out.Approvals = append(out.Approvals, h.PendingApproval)
	}
	return out, nil
}

// sentence says what a pending approval does, by the arguments that are shown of it.
func (r *Router) sentence(h bus.PendingApproval) string {
	row, _ := r.Catalog().Lookup(h.Type)
	pin, _, _ := r.state.Directory().SkillNamed(h.TenantID, h.Skill()) // without a pin, it is named
	return catalog.Sentence(row, h.Args, pin.Summary)
}

// standing lists the standing approvals of a grant's tenant for people who may approve, or the user's own.
func (r *Router) standing(g intents.Grant, mine bool, now time.Time) (out []bus.StandingApproval) {
	dir := r.state.Directory()
	roles, disabled := dir.RolesNow(g.Tenant, g.Subject, intents.KeyOfClient(g.Act.Client), g.Roles)
	caps, _ := dir.Capabilities(g.Tenant, roles)
	all := !mine && state.Covers(caps, state.CapabilityApprove)
	for _, x := range r.state.StandingApprovals(g.Tenant, now) {
		if !disabled && !g.Standing() && (all || x.UserID == g.Subject) {
			out = append(out, bus.StandingApproval(x))
		}
	}
	return out
}

// waiting is a pending approval as people see it, without its arguments, and as the state has it.
type waiting struct {
	bus.PendingApproval
	hold state.Hold
}

// inbox returns the pending approvals of a grant's user, newest first.
func (r *Router) inbox(g intents.Grant) []waiting {
	dir := r.state.Directory()
	roles, disabled := dir.RolesNow(g.Tenant, g.Subject, intents.KeyOfClient(g.Act.Client), g.Roles)
	if disabled {
		return nil
	}
	caps, _ := dir.Capabilities(g.Tenant, roles)
	approver := state.Covers(caps, state.CapabilityApprove)
	reader := intents.Approver{User: g.Subject, Key: intents.CallerOf(g.Act.Client), Roles: roles}
	var out []waiting
	for _, h := range slices.Backward(r.state.Holds(g.Tenant)) {
		if !g.Serves(h.Context) {
			continue
		}
		held := shown(h)
		held.Mine = h.User == g.Subject
		held.MayDecide = approver && slices.ContainsFunc(h.Terms.Rules, func(r intents.HoldRule) bool { return r.Accepts(reader, h.Requesters) })
		if held.Mine || held.MayDecide {
			out = append(out, waiting{held, h})
		}
	}
	return out
}

// shown is a pending approval as people see it.
func shown(h state.Hold) bus.PendingApproval {
	out := bus.PendingApproval{
		IntentID: h.Decision.IntentID, Position: h.Position, TenantID: h.Tenant, UserID: h.User, Type: h.Type,
		PlanID: h.Context.PlanID, Step: h.Context.Step, Reason: h.Decision.Reason, Rules: []bus.PendingRule{}, Approved: []bus.Vote{},
		PendingSince: intents.FormatTime(h.At), Deadline: h.Terms.Deadline, URL: bus.ApprovalURL(h.Decision.IntentID),
	}
	for _, source := range h.Sources {
		out.HasRead = append(out.HasRead, source.String())
	}
	for _, rule := range h.Terms.Rules {
		out.Rules = append(out.Rules, bus.PendingRule{
			ID: rule.ID, Reason: rule.Reason, Approvers: rule.Approvers, Roles: rule.Roles, Count: rule.Needed(),
			FourEyes: rule.FourEyes, InPerson: rule.InPerson, Satisfied: rule.ID != intents.RuleUnknownOutcome && rule.Satisfied(h.By, h.Requesters),
		})
	}
	for _, a := range h.By {
		out.Approved = append(out.Approved, bus.Vote{UserID: a.UserID, At: a.At})
	}
	return out
}

// shownArgs returns the arguments of a held intent with its retained inputs, as policies saw them,
// without what its rules mask.
func (r *Router) shownArgs(ctx context.Context, h state.Hold) (json.RawMessage, error) {
	args := h.Args
	row, _ := r.Catalog().Lookup(h.Type)
	if named, err := catalog.InputsOf(row, args); err == nil && len(named) > 0 {
		inputs, err := r.keptInputs(ctx, h)
		if err == nil {
			args, err = policies.ShowArgs(args, inputs)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, rule := range h.Terms.Rules {
		args = intents.Mask(args, rule.Mask)
	}
	return args, nil
}

// keptInputs reads the retained inputs of a held intent, as far as policies see them.
func (r *Router) keptInputs(ctx context.Context, h state.Hold) (inputs intents.DecisionInputs, err error) {
	rec, err := r.cfg.Records.Get(ctx, h.Position)
	if err != nil {
		return inputs, err
	}
	if err := json.Unmarshal(rec.Parts[storage.PartInputs], &inputs); err != nil {
		return inputs, err
	}
	inputs.Data = map[string][]byte{}
	for _, in := range inputs.Inputs {
		if in.SHA256 == "" || in.Size >= policies.MaxInputSize {
			continue
		}
		data, err := r.smallBlob(ctx, h.Tenant, in.Ref)
		if err == nil && intents.Digest(data) == in.SHA256 {
			inputs.Data[in.Pointer] = data
			continue
		}
		r.cfg.Log.WarnContext(ctx, "approvers are not shown an input", slog.String("intent_id", h.Decision.IntentID), slog.Any("error", err)) // the input's mark is shown instead
	}
	return inputs, nil
}

// smallBlob reads a blob of a tenant if it is small enough to be shown.
func (r *Router) smallBlob(ctx context.Context, tenant, ref string) ([]byte, error) {
	f, _, err := r.cfg.Blobs.Fetch(ctx, tenant, ref)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, policies.MaxInputSize))
	return data, errors.Join(err, f.Close())
}
