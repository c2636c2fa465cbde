package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/visible"
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
	cells := []string{h.IntentID, strings.TrimSpace(h.Type + " " + h.Skill()), "asked by " + h.UserID, approvedOf(h), "until " + h.Deadline, state, string(visible.JSON(h.Args))}
	for i := range cells {
		cells[i] = visible.Text(cells[i], "")
	}
	return strings.Join(cells, "\t")
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
		return answer{data: h, text: h.Text()}, err
	}
}

func approvalsDecide(decision string) func(*command) {
	return func(c *command) {
		said := catalog.Approve{Decision: decision}
		var operatorKey, args string
		c.personFlags()
		c.answer = func(ids []string) (answer, error) {
			said.IntentID = ids[0]
			if decision == catalog.DecisionEdit {
				var err error
				if said.Args, err = c.edited(args); err != nil {
					return answer{}, err
				}
			}
			decide := c.decide
			if operatorKey != "" {
				c.key, decide = operatorKey, c.decideAsOperator
			}
			result, err := decide(said)
			return answer{data: result, text: decidedText(result), note: nextOf(result)}, err
		}
		f := c.Flags()
		f.StringVar(&operatorKey, "operator-key", "", "sign with this operator key file instead")
		f.StringVar(&said.Reason, "reason", "", "reason, which is recorded")
		switch decision {
		case catalog.DecisionApprove:
			f.StringArrayVar(&said.Items, "item", nil, "item of a question that you say yes to; without it to all (repeatable)")
		case catalog.DecisionEdit:
			f.StringVar(&args, "args", "-", "file with the arguments of the order as you want them, as JSON; - is standard input")
		default:
			c.mustGive("reason")
		}
	}
}

// edited reads the arguments that somebody wants an order to have.
func (c *command) edited(from string) (json.RawMessage, error) {
	raw, err := c.input([]string{from})
	if err == nil && !json.Valid(raw) {
		err = malformed(errors.New("the arguments are no JSON: writ approvals show prints those of the order with --json"))
	}
	return raw, err
}

func decidedText(result catalog.ApproveResult) string {
	line := result.State
	if result.Code != "" {
		line += " " + string(result.Code)
	}
	if len(result.Missing) > 0 {
		line += ", approvals still needed from " + strings.Join(result.Missing, ", ")
	}
	return line + "\n"
}

// nextOf says what comes after a decision.
func nextOf(result catalog.ApproveResult) string {
	switch {
	case result.Code == intents.Changed:
		return "the next task of the step orders it as you want it; it waits if others have to approve it: writ approvals list\n"
	case result.State == catalog.ApprovalEnded:
		return "nothing is carried out; whoever asked reads why\n"
	case result.State == catalog.ApprovalReleased:
		return "it is carried out: writ receipt get " + result.IntentID + "\n"
	default:
		return ""
	}
}

func (c *command) decide(said catalog.Approve) (result catalog.ApproveResult, err error) {
	path := "/agent/approvals/" + url.PathEscape(said.IntentID)
	said.IntentID = "" // the path names it
	err = c.post(path, said, &result)
	return result, err
}

func (c *command) decideAsOperator(said catalog.Approve) (result catalog.ApproveResult, err error) {
	a, err := c.order("hitl.approve", said)
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(a.Outcome.Result, &result)
}
