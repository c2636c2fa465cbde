package httpapi

import (
	"errors"
	"strconv"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// listApprovals is GET /v1/approvals: the pending approvals that the bearer of a grant may decide,
// and the bearer's own. ?mine=true, ?type=, ?brief=true, ?limit=, ?after=.
func (v *visitor) listApprovals() (any, error) {
	q := bus.ApprovalsRequest{IntentID: v.Query("intent_id"), Mine: v.Query("mine") == "true", Brief: v.Query("brief") == "true", Type: v.Query("type"), After: v.Query("after")}
	if raw := v.Query("limit"); raw != "" {
		var err error
		if q.Limit, err = strconv.Atoi(raw); err != nil || q.Limit == 0 {
			q.Limit = -1 // refused
		}
	}
	return v.s.cfg.Router.Inbox(v.Request.Context(), v.Grant, q)
}

// endedApproval is an approval that is no longer pending.
type endedApproval struct {
	IntentID string       `json:"intent_id"`
	State    string       `json:"state"` // released, ended
	Code     intents.Code `json:"code"`
	Reason   string       `json:"reason,omitempty"`
}

// getApproval is GET /v1/approvals/{intent_id}: while the approval is pending as in the list, and
// afterwards its result, for the requester, for approvers of the tenant and for auditors.
func (v *visitor) getApproval() (any, error) {
	id := v.Param("id")
	v.line.Subject, v.line.Own = catalog.SubjectIntent(id), false
	page, err := v.s.cfg.Router.Inbox(v.Request.Context(), v.Grant, bus.ApprovalsRequest{IntentID: id})
	if err != nil {
		return nil, err
	}
	if len(page.Approvals) == 1 {
		v.line.Own = page.Approvals[0].Mine
		return page.Approvals[0], nil
	}
	out, err := v.endedApproval(id)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, problem.New(intents.NotFound, "", "no approval of this intent for you")
	}
	return out, err
}

// endedApproval is for those, too, who may approve: they read it without an audit.read.
func (v *visitor) endedApproval(id string) (endedApproval, error) {
	e, err := v.find(v.Request.Context(), id)
	if err != nil {
		return endedApproval{}, err
	}
	t := router.Thing{Owner: e.UserID, Plan: e.PlanID, Shown: []string{state.CapabilityApprove}}
	if v.May(state.CapabilityApprove) {
		v.line.Own = t.Owner == v.Grant.Subject
		if !v.Sees(t) {
			err = storage.ErrNotFound
		}
	} else {
		err = v.sees(t, catalog.SubjectIntent(id))
	}
	if err != nil {
		return endedApproval{}, err
	}
	a, err := v.s.cfg.Router.Intent(v.Request.Context(), e.Position)
	switch {
	case err != nil:
		return endedApproval{}, err
	case a.Decision.Verdict != intents.Hold || a.Code == intents.ApprovalRequired: // held, and not for this reader
		return endedApproval{}, storage.ErrNotFound
	}
	out := endedApproval{IntentID: a.IntentID, State: "released", Code: a.Code, Reason: a.Reason}
	if a.Outcome != nil {
		out.State = "ended"
	}
	return out, nil
}
