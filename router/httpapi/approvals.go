package httpapi

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// listApprovals is GET /v1/approvals: the pending approvals that the bearer of a grant may decide,
// and the bearer's own. ?mine=true, ?type=, ?limit=, ?after=.
func (s *server) listApprovals(c *gin.Context) error {
	g, _, err := s.reader(c)
	if err != nil {
		return err
	}
	q := bus.ApprovalsRequest{Mine: c.Query("mine") == "true", Type: c.Query("type"), After: c.Query("after")}
	if raw := c.Query("limit"); raw != "" {
		if q.Limit, err = strconv.Atoi(raw); err != nil || q.Limit == 0 {
			q.Limit = -1 // refused
		}
	}
	page, err := s.cfg.Router.Inbox(c.Request.Context(), g, q)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, page)
	return nil
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
func (s *server) getApproval(c *gin.Context) error {
	g, caps, err := s.reader(c)
	if err != nil {
		return err
	}
	page, err := s.cfg.Router.Inbox(c.Request.Context(), g, bus.ApprovalsRequest{IntentID: c.Param("id")})
	if err != nil {
		return err
	}
	if len(page.Approvals) == 1 {
		c.JSON(http.StatusOK, page.Approvals[0])
		return nil
	}
	out, err := s.endedApproval(c, g, caps)
	if errors.Is(err, storage.ErrNotFound) {
		return problem.New(intents.NotFound, "", "no approval of this intent for you")
	}
	if err == nil {
		c.JSON(http.StatusOK, out)
	}
	return err
}

func (s *server) endedApproval(c *gin.Context, g intents.Grant, caps []string) (endedApproval, error) {
	e, err := s.find(c.Request.Context(), g.Tenant, c.Param("id"))
	if err != nil {
		return endedApproval{}, err
	}
	if !sees(g, e, caps, capabilityAudit, state.CapabilityApprove) {
		return endedApproval{}, storage.ErrNotFound
	}
	a, err := s.cfg.Router.Intent(c.Request.Context(), e.Position)
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
