package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
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

// approvalPage is one intent that waits for approval.
type approvalPage struct {
	bus.PendingApproval
	Words    []string
	Items    []item
	Edits    bool              // it may be edited
	Skill    *consoleapi.Skill // that it calls; nil: unknown
	Manifest []diffLine        // changes of the declared manifest against the approved one
	Last     *entry            // of the same kind that was executed after people approved it
	Diff     []diffLine
	Unknown  string // why there is nothing to compare with

	// For a form that is shown again: the error, and the entered texts.
	Wrong, Edited, Message string
}

// item is a part of a question to people.
type item struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Ticked bool   `json:"-"`
}

func (*Console) approval(q *request) (any, error) { return q.waiting() }

// waiting returns the page of an intent that waits for approval.
func (q *request) waiting() (p approvalPage, err error) {
	if err := q.get("/agent/approvals/"+url.PathEscape(q.PathValue("id")), &p.PendingApproval); err != nil {
		return p, err
	}
	if err := q.skillOf(&p); err != nil {
		return p, err
	}
	p.Words = inWords(p.PendingApproval, effectOf(p))
	var asked struct {
		Items []item `json:"items"`
	}
	if p.Type == "approval.ask" && json.Unmarshal(p.Args, &asked) == nil {
		p.Items = asked.Items
	}
	p.Edits = p.PlanID != "" && p.Type != "approval.ask"
	return p, q.compare(&p)
}

// skillOf finds the skill that the intent calls, as it is approved and declared now.
func (q *request) skillOf(p *approvalPage) error {
	name := p.PendingApproval.Skill()
	if p.Type != "skill.call" || name == "" {
		return nil
	}
	var all []consoleapi.Skill
	if err := q.get(consoleapi.Path+"skills", &all); err != nil {
		return err
	}
	for _, s := range all {
		if s.Name == name || (intents.Pin{Skill: s.Name}).OfTool(name) {
			p.Skill = &s
			if s.Before != nil && s.Now != nil {
				p.Manifest = diff("approved", s.Before.Text, "declared now", s.Now.Text)
			}
			return nil
		}
	}
	return nil
}

// effectOf returns the effect of an intent's execution, as approved now.
func effectOf(p approvalPage) catalog.Effect {
	row, ok := catalog.Builtin().Lookup(p.Type)
	switch {
	case !ok || row.Effect != catalog.EffectPin:
		return cmp.Or(row.Effect, catalog.Once)
	case p.Skill != nil && p.Skill.Pin != nil:
		return catalog.Effect(p.Skill.Pin.Effect)
	default:
		return catalog.Once
	}
}

// inWords describes the consequences of a yes.
func inWords(h bus.PendingApproval, effect catalog.Effect) []string {
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

// compare finds the newest intent of the same kind that people approved and that was executed.
func (q *request) compare(p *approvalPage) error {
	var l intentList
	if err := q.get("/v1/intents?"+url.Values{"type": {p.Type}, "verdict": {string(intents.Hold)}, "limit": {"50"}}.Encode(), &l); err != nil {
		return err
	}
	p.Unknown = "You see no earlier one that was approved."
	for _, e := range l.Intents {
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
		s, err := q.signed(e.IntentID)
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

// decisions are the choices that the form has buttons for.
var decisions = []string{catalog.DecisionApprove, catalog.DecisionReject, catalog.DecisionRequestChanges, catalog.DecisionEdit}

// decide sends the person's decision to the API, which signs it as the person's intent. A form
// with two decisions, or none, is shown again with its entries.
func (c *Console) decide(q *request) (any, error) {
	id, said := q.PathValue("id"), q.PostFormValue("decision")
	if !slices.Contains(decisions, said) {
		return nil, problem.New(intents.SchemaInvalid, "/decision", "say approve, reject, request_changes or edit")
	}
	p, err := q.waiting()
	if err != nil {
		return nil, err
	}
	body := map[string]any{"decision": said}
	if p.Message = strings.TrimSpace(q.PostFormValue("reason")); p.Message != "" {
		body["reason"] = p.Message
	}
	items := q.PostForm["item"]
	for i := range p.Items {
		p.Items[i].Ticked = slices.Contains(items, p.Items[i].ID)
	}
	args := strings.ReplaceAll(q.PostFormValue("args"), "\r\n", "\n") // browsers replace line ends
	if args != "" && !sameJSON(args, p.Args) {
		p.Edited = args
	}
	switch {
	case said == catalog.DecisionEdit && !json.Valid([]byte(args)):
		p.Wrong = "The edited arguments are no JSON. Nothing was sent."
	case said == catalog.DecisionEdit:
		body["args"] = json.RawMessage(args)
	case p.Edited != "":
		p.Wrong = "You have edited the arguments, and this button sends no edit. Nothing was sent: have the edited arguments signed instead, or open the page again to decide about those that wait."
	case said == catalog.DecisionApprove && len(p.Items) > 0 && len(items) == 0:
		p.Wrong = "You have ticked no item. Nothing was sent: tick those that you say yes to, or reject the question."
	case said == catalog.DecisionApprove && len(items) > 0:
		body["items"] = items
	}
	if p.Wrong != "" {
		c.render(q.w, q.Request, intents.SchemaInvalid.Info().Status, "approval", q.s, p)
		return nil, errDone
	}
	var out catalog.ApproveResult
	if err := q.post("/agent/approvals/"+url.PathEscape(id), body, &out); err != nil {
		return nil, err
	}
	now := "You said " + strings.ReplaceAll(said, "_", " ") + " of " + short(id) + "."
	switch out.State {
	case catalog.ApprovalReleased:
		now += " " + q.becomes(id)
	case catalog.ApprovalPending:
		now += " It still waits for: " + strings.Join(out.Missing, ", ") + "."
	default:
		now += " It has ended: " + string(out.Code) + "."
		if out.Reason != "" {
			now += " " + out.Reason + "."
		}
	}
	return q.see("/console/approvals", now)
}

// sameJSON reports whether a text is a document that is equal to another one.
func sameJSON(text string, doc json.RawMessage) bool {
	a, err := intents.Canonical([]byte(text))
	b, wrong := intents.Canonical(doc)
	return err == nil && wrong == nil && bytes.Equal(a, b)
}

// How long a page waits for the outcome of a released intent, and the interval of its checks.
const (
	becomesTime  = 3 * time.Second
	becomesEvery = 100 * time.Millisecond
)

// becomes returns the outcome of a released intent, or that it is not known yet.
func (q *request) becomes(id string) string {
	again := time.NewTicker(becomesEvery)
	defer again.Stop()
	limit := time.After(becomesTime)
	for {
		var now struct {
			State  string
			Code   intents.Code
			Reason string
		}
		err := q.get(bus.ApprovalURL(url.PathEscape(id)), &now)
		switch {
		case err == nil && now.State == catalog.ApprovalEnded && now.Code == intents.OK:
			return "It was carried out."
		case err == nil && now.State == catalog.ApprovalEnded:
			return strings.TrimSuffix("It was released, and then failed: "+string(now.Code)+", "+now.Reason, ", ") + "."
		}
		select {
		case <-again.C:
		case <-limit:
			return "It was released, and has not ended yet."
		case <-q.Context().Done():
			return "It was released."
		}
	}
}
