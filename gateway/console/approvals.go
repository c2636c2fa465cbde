package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/visible"
)

// approvalsPage lists the intents that wait, or those that have waited.
type approvalsPage struct {
	bus.ApprovalsReply
	Decided *intentList
}

func (*Console) approvals(q *request) (any, error) {
	var page approvalsPage
	if q.FormValue("decided") != "" {
		list, err := q.intents(filter{"verdict": string(intents.Hold)})
		list.Next = strings.Replace(list.Next, "?", "?decided=yes&", 1)
		page.Decided = &list
		return page, err
	}
	path := "/agent/approvals?limit=50"
	if after := q.FormValue("after"); after != "" {
		path += "&after=" + url.QueryEscape(after)
	}
	err := q.get(path, &page.ApprovalsReply)
	return page, err
}

// approvalPage is one intent that waits for approval, or its result.
type approvalPage struct {
	bus.PendingApproval
	Ended       *endedApproval // it waits no more: nothing else is set
	Consequence string         // of a yes
	Rows        []argument
	Items       []item
	Edits       bool              // it may be edited
	Stands      []string          // members of its input, if a yes may also count for later calls
	Skill       *consoleapi.Skill // that it calls; nil: unknown
	Manifest    []diffLine        // changes of the declared manifest against the approved one
	Last        *entry            // of the same kind that was executed after people approved it
	Diff        []diffLine
	Unknown     string // why there is nothing to compare with

	// For a form that is shown again: the error, and the entered texts.
	Wrong, Edited, Message string
}

// item is a part of a question to people.
type item struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Ticked bool   `json:"-"`
}

// endedApproval is what became of an intent that waited.
type endedApproval struct {
	IntentID string       `json:"intent_id"`
	State    string       `json:"state"` // released, ended
	Code     intents.Code `json:"code"`
	Reason   string       `json:"reason"`
}

// How says how it ended, other than done.
func (e endedApproval) How() string { return ended(e.Code, e.Reason) }

// approval is the page of an intent that waits, and afterwards of what became of it: links to it keep
// working.
func (*Console) approval(q *request) (any, error) {
	p, err := q.waiting()
	if err == nil || problem.FromError(err).Code != intents.NotFound {
		return p, err
	}
	ended, wrong := q.ended(q.PathValue("id"))
	if wrong != nil {
		return nil, err
	}
	p.IntentID, p.Ended = ended.IntentID, &ended
	return p, nil
}

func (q *request) ended(id string) (e endedApproval, err error) {
	err = q.get(bus.ApprovalURL(url.PathEscape(id)), &e)
	return e, err
}

// waiting returns the page of an intent that waits for approval.
func (q *request) waiting() (p approvalPage, err error) {
	if err := q.get("/agent/approvals/"+url.PathEscape(q.PathValue("id")), &p.PendingApproval); err != nil {
		return p, err
	}
	if err := q.skillOf(&p); err != nil {
		return p, err
	}
	p.Consequence, p.Rows = consequences[effectOf(p)], argumentsOf(p.PendingApproval)
	var asked struct {
		Items []item `json:"items"`
	}
	if p.Type == "approval.ask" && json.Unmarshal(p.Args, &asked) == nil {
		p.Items = asked.Items
	}
	p.Edits, p.Stands = p.PlanID != "" && p.Type != "approval.ask", mayStand(p.PendingApproval)
	return p, q.compare(&p)
}

// mayStand lists the members of the input of a call if no rule wants approvals of each call. The router
// knows the other conditions of standing approvals.
func mayStand(h bus.PendingApproval) []string {
	var args struct {
		Input map[string]json.RawMessage `json:"input"`
	}
	each := func(r bus.PendingRule) bool { return r.FourEyes }
	if h.Type != "skill.call" || h.PlanID == "" || slices.ContainsFunc(h.Rules, each) || json.Unmarshal(h.Args, &args) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(args.Input))
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

// consequences of a yes, by effect.
var consequences = map[catalog.Effect]string{
	catalog.Once:       "It may act on the world, and cannot be taken back.",
	catalog.Idempotent: "It changes something; done twice it is as done once.",
	catalog.Pure:       "It only reads: it changes nothing.",
}

// argument is a row of the arguments of an intent.
type argument struct {
	Name, Value string
	Long        bool     // it has lines
	Scripts     []string // of letters that can pass for Latin ones
}

// argumentsOf are all arguments of an intent, with those of a skill as rows of their own.
func argumentsOf(h bus.PendingApproval) (out []argument) {
	var args map[string]json.RawMessage
	if json.Unmarshal(h.Args, &args) != nil {
		return []argument{argumentOf("arguments", h.Args)}
	}
	var input map[string]json.RawMessage
	if h.Type == "skill.call" && json.Unmarshal(args["input"], &input) == nil {
		for _, name := range slices.Sorted(maps.Keys(input)) {
			out = append(out, argumentOf(name, input[name]))
		}
		delete(args, "input")
		delete(args, "skill") // the page names it
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		out = append(out, argumentOf(name, args[name]))
	}
	return out
}

func argumentOf(name string, raw json.RawMessage) argument {
	text := string(raw)
	if !bytes.HasPrefix(raw, []byte(`"`)) || json.Unmarshal(raw, &text) != nil {
		text = pretty(raw)
	}
	return argument{name, text, strings.Contains(text, "\n"), visible.Scripts(name + " " + text)}
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
		if len(s.Args) == 0 || argsOf(s.Args)["skill"] != argsOf(p.Args)["skill"] {
			continue
		}
		p.Last, p.Unknown = &e, ""
		p.Diff = diff("approved "+short(e.IntentID), pretty(s.Args), "this one", pretty(p.Args))
		return nil
	}
	return nil
}

// approveSession is the button that says yes to later calls of the session, too.
const approveSession = "approve_session"

// approveAll is the button that says yes to all items of a question.
const approveAll = "approve_all"

// decisions are the choices that the form has buttons for.
var decisions = []string{catalog.DecisionApprove, approveAll, approveSession, catalog.DecisionWithdraw, catalog.DecisionReject, catalog.DecisionRequestChanges, catalog.DecisionEdit}

// decide sends the person's decision to the API, which signs it as the person's intent. A form that
// cannot be sent, or is refused, is shown again with its entries.
func (c *Console) decide(q *request) (any, error) {
	id, said := q.PathValue("id"), q.PostFormValue("decision")
	if !slices.Contains(decisions, said) {
		return nil, problem.New(intents.SchemaInvalid, "/decision", "say approve, reject, request_changes or edit")
	}
	if said == catalog.DecisionWithdraw {
		err := q.post("/agent/approvals/"+url.PathEscape(id), map[string]any{"decision": said}, nil)
		if err != nil {
			return nil, err
		}
		return q.see("/console/approvals", "Later calls wait for people again.")
	}
	p, err := q.waiting()
	if err != nil {
		return nil, err
	}
	p.entered(q.PostForm, said == approveAll)
	session := said == approveSession
	if said == approveAll || session {
		said = catalog.DecisionApprove
	}
	body, err := p.decision(said)
	if err == nil && session {
		uses, _ := strconv.Atoi(q.PostFormValue("uses")) // the API refuses 0
		within, _ := strconv.Atoi(q.PostFormValue("within_sec"))
		body["also"] = catalog.Also{Uses: uses, WithinSec: within, Free: q.PostForm["free"]}
	}
	var out catalog.ApproveResult
	if err == nil {
		err = q.post("/agent/approvals/"+url.PathEscape(id), body, &out)
	}
	if err != nil { // what was typed stays
		x := problem.FromError(err)
		p.Wrong = x.Error()
		if body != nil {
			p.Wrong += ". " + stands(q.Request, x) + " " + x.Hint
		}
		c.render(q.w, q.Request, x.Status, "approval", q.s, p)
		return nil, errDone
	}
	return q.see("/console/approvals/"+id, q.decided(id, said, out))
}

// entered puts what a form says into the page, so that it is there when the page is shown again.
func (p *approvalPage) entered(form url.Values, all bool) {
	p.Message = strings.TrimSpace(form.Get("reason"))
	for i := range p.Items {
		p.Items[i].Ticked = all || slices.Contains(form["item"], p.Items[i].ID)
	}
	args := strings.ReplaceAll(form.Get("args"), "\r\n", "\n") // browsers replace line ends
	if args != "" && !sameJSON(args, p.Args) {
		p.Edited = args
	}
}

// decision is the body that says what the form says. A form with two decisions, or none, sends nothing.
func (p *approvalPage) decision(said string) (map[string]any, error) {
	wrong := func(text string) (map[string]any, error) {
		return nil, problem.New(intents.SchemaInvalid, "", text+" Nothing was sent.")
	}
	body := map[string]any{"decision": said}
	if p.Message != "" {
		body["reason"] = p.Message
	}
	var ticked []string
	for _, x := range p.Items {
		if x.Ticked {
			ticked = append(ticked, x.ID)
		}
	}
	switch refuses := said == catalog.DecisionReject || said == catalog.DecisionRequestChanges; {
	case said == catalog.DecisionEdit && p.Edited == "":
		return wrong("You have edited nothing: approve it, or change its arguments.")
	case said == catalog.DecisionEdit && !json.Valid([]byte(p.Edited)):
		return wrong("The edited arguments are no JSON.")
	case said == catalog.DecisionEdit:
		body["args"] = json.RawMessage(p.Edited)
	case p.Edited != "":
		return wrong("You have edited the arguments, and this button sends no edit: send the edited version, or open the page again to decide about the one that waits.")
	case refuses && p.Message == "":
		return wrong("Say why: the agent reads it.")
	case !refuses && len(p.Items) > 0 && len(ticked) == 0:
		return wrong("You have ticked no item: tick those that you say yes to, or reject the question.")
	case !refuses && len(ticked) > 0:
		body["items"] = ticked
	}
	return body, nil
}

// decided says what a decision has done.
func (q *request) decided(id, said string, out catalog.ApproveResult) string {
	now := "You said " + strings.ReplaceAll(said, "_", " ") + " of " + short(id) + "."
	switch out.State {
	case catalog.ApprovalReleased:
		return now + " " + q.becomes(id)
	case catalog.ApprovalPending:
		return now + " It still waits for: " + strings.Join(out.Missing, ", ") + "."
	}
	return now + " It has ended. " + ended(out.Code, out.Reason)
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
		now, err := q.ended(id)
		switch {
		case err == nil && now.State == catalog.ApprovalEnded && now.Code == intents.OK:
			return "It was carried out."
		case err == nil && now.State == catalog.ApprovalEnded:
			return "It was released, and then failed. " + ended(now.Code, now.Reason)
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
