package state

import (
	"encoding/json"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TypeApprovalAsk is the type of questions to people. A question is always held: people answer
// it by releasing it, and its result records who approved what.
const TypeApprovalAsk = "approval.ask"

var approvalAsk = newTransition(TypeApprovalAsk,
	func(_ *View, o Intent, a catalog.ApprovalAsk) (Effect, error) {
		for i, item := range a.Items {
			if slices.ContainsFunc(a.Items[:i], func(x catalog.AskItem) bool { return x.ID == item.ID }) {
				return Effect{}, illegal(fmt.Sprintf("/intent/args/items/%d/id", i), "another item has this id")
			}
		}
		return Effect{Result: answered(a, o.Approvals)}, nil
	},
	func(*State, Intent, catalog.ApprovalAsk) error { return nil }).retainsAllBut("title", "detail", "items/text")

// AskRule is the rule by which the router holds a question: one of the named people approves, or
// anybody whose role allows it. Holds of the policy apply in addition.
func (d *Directory) AskRule(tenant string, args json.RawMessage) []intents.HoldRule {
	var a catalog.ApprovalAsk
	_ = json.Unmarshal(args, &a) // its schema was checked
	rule := intents.HoldRule{ID: intents.RuleAsk, Reason: "an agent asks people", Approvers: a.Approvers}
	if t := d.tenants[tenant]; t != nil && len(a.Approvers) == 0 {
		rule.Roles = t.rolesThatApprove()
	}
	return []intents.HoldRule{rule}
}

// answered is the result once these people have approved. The caller has checked that each of
// their items is one of the question's.
func answered(a catalog.ApprovalAsk, by []intents.Approval) catalog.ApprovalAskResult {
	all, out := []string{}, catalog.ApprovalAskResult{Approved: []catalog.ApprovedItems{}}
	for _, item := range a.Items {
		all = append(all, item.ID)
	}
	for _, yes := range by {
		to := catalog.ApprovedItems{UserID: yes.UserID, At: yes.At, Items: yes.Items}
		if to.Items == nil {
			to.Items = all
		}
		out.Approved = append(out.Approved, to)
	}
	return out
}

// AnswerOf is the canonical result of a question once these people have approved it.
func AnswerOf(args json.RawMessage, by []intents.Approval) ([]byte, error) {
	var a catalog.ApprovalAsk
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(answered(a, by))
	if err != nil {
		return nil, err
	}
	return intents.Canonical(raw)
}

// checkItems refuses items that a held intent does not ask about.
func (h Hold) checkItems(items []string) error {
	var a catalog.ApprovalAsk
	if h.Type == TypeApprovalAsk {
		_ = json.Unmarshal(h.Args, &a) // its schema was checked
	}
	for i, id := range items {
		if !slices.ContainsFunc(a.Items, func(x catalog.AskItem) bool { return x.ID == id }) {
			return illegal(fmt.Sprintf("/intent/args/items/%d", i), "the held intent does not ask about an item of this id")
		}
	}
	return nil
}
