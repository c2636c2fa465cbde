package state

import (
	"encoding/json"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TypeApprovalAsk is the type of questions to people. One is always held: the people's answer
// is its release, and its result says who has said yes to what.
const TypeApprovalAsk = "approval.ask"

var approvalAsk = move(TypeApprovalAsk,
	func(v *View, o Order, a catalog.ApprovalAsk) (Effect, error) {
		if v.s.rules < intents.RulesWorkflows {
			return Effect{}, illegal("/intent/type", "nobody is asked under the rules in force")
		}
		for i, item := range a.Items {
			if slices.ContainsFunc(a.Items[:i], func(x catalog.AskItem) bool { return x.ID == item.ID }) {
				return Effect{}, illegal(fmt.Sprintf("/intent/args/items/%d/id", i), "another item has this id")
			}
		}
		return Effect{Result: answered(a, o.Approvals)}, nil
	},
	func(*State, Order, catalog.ApprovalAsk) error { return nil }).keepsAllBut("title", "detail", "items/text")

// AskRule is the rule by which the router holds a question: one of those whom it names says yes,
// or anybody whose role lets them. Whatever policy asks for comes on top.
func (d *Directory) AskRule(tenant string, args json.RawMessage) []intents.HoldRule {
	var a catalog.ApprovalAsk
	_ = json.Unmarshal(args, &a) // held to their schema before
	rule := intents.HoldRule{ID: intents.RuleAsk, Reason: "an agent asks people", Approvers: a.Approvers}
	if t := d.tenants[tenant]; t != nil && len(a.Approvers) == 0 {
		rule.Roles = t.rolesThatApprove(d.rules)
	}
	return []intents.HoldRule{rule}
}

// AskRule is that of the directory in force, which the decision relies on.
func (v *View) AskRule(tenant string, args json.RawMessage) []intents.HoldRule {
	return v.directory(tenant).AskRule(tenant, args)
}

// answered is the result once these people have said yes. The caller has checked that each of
// their items is one.
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

// AnswerOf is the result of a question, canonical, once these people have said yes to it.
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

// askedFor refuses items that a held order does not ask people about.
func (h Hold) askedFor(items []string) error {
	var a catalog.ApprovalAsk
	if h.Type == TypeApprovalAsk {
		_ = json.Unmarshal(h.Args, &a) // held to their schema before
	}
	for i, id := range items {
		if !slices.ContainsFunc(a.Items, func(x catalog.AskItem) bool { return x.ID == id }) {
			return illegal(fmt.Sprintf("/intent/args/items/%d", i), "the held order does not ask about an item of this id")
		}
	}
	return nil
}
