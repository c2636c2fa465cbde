package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

func approvalsList(c *command) {
	var mine bool
	var typ string
	c.personFlags()
	page := c.pageFlags()
	c.answer = func([]string) (answer, error) {
		q := map[string]string{"type": typ}
		if mine {
			q["mine"] = "true"
		}
		var reply bus.ApprovalsReply
		err := c.get("/agent/approvals"+page(q), &reply)
		a := answer{data: reply, note: nextPage(reply.Cursor)}
		for _, h := range reply.Approvals {
			a.text += heldLine(h) + "\n"
		}
		return a, err
	}
	c.Flags().BoolVar(&mine, "mine", false, "only orders that you asked for")
	c.Flags().StringVar(&typ, "type", "", "only orders of this type")
}

// heldLine is a held order in one line. A text of others cannot add lines to it.
func heldLine(h bus.HeldOrder) string {
	state := "may decide"
	if !h.MayDecide {
		state = "yours"
	}
	return strings.Join([]string{h.IntentID, h.Type, "asked by " + h.UserID, approvedOf(h), "until " + h.Deadline, state, visible(string(h.Args), "")}, "\t")
}

func approvedOf(h bus.HeldOrder) string {
	var out []string
	for _, r := range h.Rules {
		word := "waits"
		if r.Satisfied {
			word = "satisfied"
		}
		out = append(out, fmt.Sprintf("%s (of %d) %s", r.ID, r.Count, word))
	}
	return strings.Join(out, ", ")
}

func approvalsShow(c *command) {
	c.personFlags()
	c.answer = func(args []string) (answer, error) {
		var h bus.HeldOrder
		err := c.get("/agent/approvals/"+url.PathEscape(args[0]), &h)
		return answer{data: h, text: heldText(h)}, err
	}
}

func heldText(h bus.HeldOrder) string {
	var b strings.Builder
	fmt.Fprintf(&b, "order     %s\ntype      %s\nasked by  %s\nplan      %s, step %d\nheld      %s\ndeadline  %s\n",
		h.IntentID, h.Type, visible(h.UserID, ""), h.PlanID, h.Step, h.HeldAt, h.Deadline)
	printArgs(&b, h.Args)
	for _, r := range h.Rules {
		fmt.Fprintf(&b, "rule      %s: %s (%d of %s)\n", r.ID, visible(r.Reason, ""), r.Count, strings.Join(append(r.Approvers, r.Roles...), ", "))
	}
	for _, a := range h.Approved {
		fmt.Fprintf(&b, "approved  %s at %s\n", a.UserID, a.At)
	}
	return b.String()
}

func approvalsDecide(decision string) func(*command) {
	return func(c *command) {
		var reason, operatorKey string
		c.personFlags()
		c.answer = func(args []string) (answer, error) {
			said := catalog.Approve{IntentID: args[0], Decision: decision, Reason: reason}
			decide := c.decide
			if operatorKey != "" {
				c.key, decide = operatorKey, c.decideAsOperator
			}
			result, err := decide(said)
			line := result.State
			if result.Code != "" {
				line += " " + string(result.Code)
			}
			if len(result.Missing) > 0 {
				line += ", approvals still needed from " + strings.Join(result.Missing, ", ")
			}
			return answer{data: result, text: line + "\n"}, err
		}
		c.Flags().StringVar(&operatorKey, "operator-key", "", "sign with this operator key file instead")
		c.Flags().StringVar(&reason, "reason", "", "reason, which is recorded")
		if decision != catalog.DecisionApprove {
			c.mustGive("reason")
		}
	}
}

func (c *command) decide(said catalog.Approve) (result catalog.ApproveResult, err error) {
	to, err := c.client()
	if err != nil {
		return result, err
	}
	body := map[string]string{"decision": said.Decision}
	if said.Reason != "" {
		body["reason"] = said.Reason
	}
	err = to.Post(c.Context(), "/agent/approvals/"+url.PathEscape(said.IntentID), body, &result)
	return result, err
}

func (c *command) decideAsOperator(said catalog.Approve) (result catalog.ApproveResult, err error) {
	a, err := c.order("hitl.approve", said)
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(a.Outcome.Result, &result)
}
