package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/office"
	"aob.dev/writ/internal/problem"
)

func (c *Console) approvals(q *request) (any, error) {
	var page bus.ApprovalsReply
	path := "/agent/approvals?limit=50"
	if after := q.FormValue("after"); after != "" {
		path += "&after=" + url.QueryEscape(after)
	}
	err := q.get(path, &page)
	return page, err
}

// approvalPage is one order that waits.
type approvalPage struct {
	bus.HeldOrder
	Words   []string
	Items   []item
	Edits   bool   // it may be edited
	Last    *entry // of the same kind that was carried out after people approved it
	Diff    []diffLine
	Unknown string // why there is nothing to compare with
}

// item of a question to people.
type item struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func (c *Console) approval(q *request) (any, error) {
	var h bus.HeldOrder
	if err := q.get("/agent/approvals/"+url.PathEscape(q.PathValue("id")), &h); err != nil {
		return nil, err
	}
	effect, err := q.effectOf(h)
	if err != nil {
		return nil, err
	}
	p := approvalPage{HeldOrder: h, Words: inWords(h, effect)}
	var asked struct {
		Items []item `json:"items"`
	}
	if h.Type == "approval.ask" && json.Unmarshal(h.Args, &asked) == nil {
		p.Items = asked.Items
	}
	p.Edits = h.PlanID != "" && h.Type != "approval.ask"
	return p, q.compare(&p)
}

// effectOf is what carrying an order out does to the world, as it is approved today.
func (q *request) effectOf(h bus.HeldOrder) (catalog.Effect, error) {
	row, ok := catalog.Builtin().Lookup(h.Type)
	if !ok || row.Effect != catalog.EffectPin {
		return cmp.Or(row.Effect, catalog.Once), nil
	}
	var all []office.Skill
	err := q.get(office.Path+"skills", &all)
	for _, s := range all {
		if s.Name == argsOf(h.Args)["skill"] && s.Pin != nil {
			return catalog.Effect(s.Pin.Effect), err
		}
	}
	return catalog.Once, err
}

// inWords says what comes of a yes.
func inWords(h bus.HeldOrder, effect catalog.Effect) []string {
	title := h.Type
	if row, ok := catalog.Builtin().Lookup(h.Type); ok {
		title = row.Title
	}
	what := fmt.Sprintf("%s asks for: %s (%s).", h.UserID, title, h.Type)
	if skill, ok := argsOf(h.Args)["skill"].(string); ok && h.Type == "skill.call" {
		what = fmt.Sprintf("%s asks to call the skill %s, with exactly the arguments below.", h.UserID, skill)
	}
	out := []string{what}
	switch effect {
	case catalog.Once:
		out = append(out, "It may act on the world, and is not done twice by itself. An approval cannot be taken back once it is carried out.")
	case catalog.Pure:
		out = append(out, "It only reads: it changes nothing.")
	default:
		out = append(out, "Done twice it is as done once.")
	}
	for _, r := range h.Rules {
		need := fmt.Sprintf("Rule %s wants %d yes", r.ID, max(r.Count, 1))
		if len(r.Approvers) > 0 {
			need += " of " + strings.Join(r.Approvers, ", ")
		}
		if len(r.Roles) > 0 {
			need += " of somebody with the role " + strings.Join(r.Roles, " or ")
		}
		if r.FourEyes {
			need += "; four eyes: the one who asked, and whoever has edited it, does not count"
		}
		out = append(out, need+".")
	}
	return out
}

// compare finds the newest order of the same kind that people approved and that was done.
func (q *request) compare(p *approvalPage) error {
	var l orderList
	if err := q.get("/v1/intents?"+url.Values{"type": {p.Type}, "verdict": {string(intents.Hold)}, "limit": {"50"}}.Encode(), &l); err != nil {
		return err
	}
	p.Unknown = "You see no earlier one that was approved."
	for _, e := range l.Orders {
		if e.IntentID == p.IntentID {
			continue
		}
		a, err := q.answer(e.IntentID)
		if err != nil {
			return err
		}
		if a.Outcome == nil || a.Outcome.Status != intents.Done {
			continue
		}
		s, err := q.sealed(e.IntentID)
		if err != nil {
			return err
		}
		if s == nil || len(s.Args) == 0 || argsOf(s.Args)["skill"] != argsOf(p.Args)["skill"] {
			continue
		}
		p.Last, p.Unknown = &e, ""
		p.Diff = diff("approved "+short(e.IntentID), pretty(s.Args), "this one", pretty(p.Args))
		return nil
	}
	return nil
}

// decisions that the form has buttons for.
var decisions = []string{catalog.DecisionApprove, catalog.DecisionReject, catalog.DecisionRequestChanges, catalog.DecisionEdit}

// decide sends what the person says to the API, which seals it as the person's order.
func (c *Console) decide(q *request) (any, error) {
	id, said := q.PathValue("id"), q.PostFormValue("decision")
	if !slices.Contains(decisions, said) {
		return nil, problem.New(intents.SchemaInvalid, "/decision", "say approve, reject, request_changes or edit")
	}
	body := map[string]any{"decision": said}
	if reason := strings.TrimSpace(q.PostFormValue("reason")); reason != "" {
		body["reason"] = reason
	}
	if items := q.PostForm["item"]; said == catalog.DecisionApprove && len(items) > 0 {
		body["items"] = items
	}
	if said == catalog.DecisionEdit {
		args := json.RawMessage(q.PostFormValue("args"))
		if !json.Valid(args) {
			return nil, problem.New(intents.SchemaInvalid, "/args", "the edited arguments are no JSON")
		}
		body["args"] = args
	}
	var out catalog.ApproveResult
	if err := q.post("/agent/approvals/"+url.PathEscape(id), body, &out); err != nil {
		return nil, err
	}
	text := "You said " + strings.ReplaceAll(said, "_", " ") + " of " + short(id) + "."
	switch out.State {
	case catalog.ApprovalReleased:
		text += " It is being carried out."
	case catalog.ApprovalHeld:
		text += " It still waits for: " + strings.Join(out.Missing, ", ") + "."
	default:
		text += " It has ended: " + string(out.Code) + "."
	}
	return q.see("/console/approvals", text)
}
