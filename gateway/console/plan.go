package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem/edge"
)

// planList is a page of plans.
type planList struct {
	catalog.PlanListResult
	Status string
}

func (c *Console) plans(q *request) (any, error) {
	out := planList{Status: q.FormValue("status")}
	v := url.Values{"limit": {"50"}}
	for _, name := range []string{"status", "after"} {
		if value := q.FormValue(name); value != "" {
			v.Set(name, value)
		}
	}
	err := q.get("/agent/plans?"+v.Encode(), &out.PlanListResult)
	return out, err
}

// planPage is a plan with its graph, the times of its steps, its timeline and intents.
type planPage struct {
	catalog.PlanView
	Says      string // how it stands
	Graph     graph
	Waterfall waterfall
	Rows      []stepRow
	Rest      spent // by planning, answers, and steps that were replaced
	Events    []event
	NextEvent int // the first that the page leaves out; 0: none
	List      intentList
	MayCancel bool
	MayReplay bool
}

// says is how a plan stands, in words.
var says = map[catalog.PlanStatus]string{
	catalog.PlanPending: "It waits to be planned.", catalog.PlanPlanning: "It is being planned.", catalog.PlanExecuting: "It is being carried out.",
	catalog.PlanReplanning: "A step failed, and the rest is being planned anew.", catalog.PlanComplete: "It is done.", catalog.PlanFailed: "It failed.",
	catalog.PlanNeedsInput: "It has ended with a question to its user.",
}

// stepStands is how a step stands, in words.
func stepStands(s catalog.StepStatus) string {
	switch s {
	case catalog.StepPending:
		return "not begun"
	case catalog.StepPendingApproval:
		return "waits for people"
	case catalog.StepInsufficient:
		return "without a result"
	default:
		return string(s)
	}
}

// stepRow is a step with what people want to know of it.
type stepRow struct {
	catalog.StepView
	After        []string // the steps that it waits for, with the conditions of a run
	Took, Waited string   // the latter for people
	spent
}

// spent is what something used of models.
type spent struct {
	Tokens int
	Cost   *float64 // nil: a model has no price
}

func (s *spent) add(u consoleapi.Use) {
	switch {
	case s.Tokens == 0:
		s.Cost = u.Cost
	case s.Cost != nil && u.Cost != nil:
		sum := *s.Cost + *u.Cost
		s.Cost = &sum
	default:
		s.Cost = nil
	}
	s.Tokens = catalog.AddTokens(s.Tokens, u.Tokens)
}

// event of a plan's timeline.
type event struct {
	Type     string          `json:"event_type"`
	At       time.Time       `json:"ts"`
	TaskID   string          `json:"task_id"`
	IntentID string          `json:"intent_id"`
	Payload  json.RawMessage `json:"payload"`
}

// Bounds of the timeline on a page.
const (
	maxEvents     = 50
	maxEventBytes = 5 << 10
)

func (c *Console) plan(q *request) (any, error) {
	var p planPage
	id := q.PathValue("id")
	at := "/agent/plans/" + url.PathEscape(id)
	if err := q.get(at, &p.PlanView); err != nil {
		return nil, err
	}
	var trace struct {
		Events []event `json:"events"`
	}
	if err := q.get(at+"/trace", &trace); err != nil {
		return nil, err
	}
	var used []consoleapi.Use
	if err := q.get(consoleapi.Path+"plans/"+url.PathEscape(id)+"/use", &used); err != nil {
		return nil, err
	}
	end := c.Now()
	if p.CompletedAt != nil {
		end = *p.CompletedAt
	}
	steps := stepsOf(trace.Events)
	people := waitsForPeople(trace.Events, steps, end)
	p.Says, p.Graph, p.Waterfall = says[p.Status], graphOf(p.PlanView), waterfallOf(p.PlanView, people, end)
	for i, s := range p.Steps {
		row := stepRow{StepView: s}
		for _, w := range waits(p.PlanView, i) {
			row.After = append(row.After, w.String())
		}
		if s.StartedAt != nil {
			row.Took = lasted(s.StartedAt.Sub(*cmp.Or(s.FinishedAt, &end)).Abs())
		}
		if d := people.of(s.Step); d > 0 {
			row.Waited = lasted(d)
		}
		p.Rows = append(p.Rows, row)
	}
	for _, u := range used {
		of := &p.Rest
		if i := slices.IndexFunc(p.Rows, func(r stepRow) bool { return u.TaskID != "" && r.Step == steps[u.TaskID] }); i >= 0 {
			of = &p.Rows[i].spent
		}
		of.add(u)
	}
	from, _ := strconv.Atoi(q.FormValue("event")) // 0: there is none
	p.takeEvents(trace.Events, from)
	if own := p.UserID == q.s.User; own && !p.Status.Ended() {
		row, _ := catalog.Builtin().Lookup("cancel")
		p.MayCancel = q.may(row.Capability) == nil
	} else if own && p.Run != nil {
		p.MayReplay = q.may(catalog.ReplayRuns) == nil
	}
	var err error
	p.List, err = q.intents(filter{"plan_id": id})
	return p, err
}

// takeEvents takes the events that have room on the page, at least one.
func (p *planPage) takeEvents(all []event, from int) {
	size := 0
	for i, e := range all[max(0, min(from, len(all))):] {
		if size += len(e.Payload); i == maxEvents || i > 0 && size > maxEventBytes {
			p.NextEvent = max(0, from) + i
			return
		}
		p.Events = append(p.Events, e)
	}
}

// logsPage is the log of a plan or of one of its steps.
type logsPage struct {
	consoleapi.Lines
	PlanID, Step string
}

func (*Console) logs(q *request) (any, error) {
	p := logsPage{PlanID: q.PathValue("id"), Step: q.FormValue("step")}
	path := consoleapi.Path + "plans/" + url.PathEscape(p.PlanID) + "/lines"
	if p.Step != "" {
		path += "?" + url.Values{"step": {p.Step}}.Encode()
	}
	err := q.get(path, &p.Lines)
	return p, err
}

// cancelPlan and replayRun are what the buttons of the page do.
func (c *Console) cancelPlan(q *request) (any, error) {
	id := q.PathValue("id")
	if err := q.c.ask(q.Context(), q.s.credentials, http.MethodDelete, "/agent/plans/"+url.PathEscape(id), nil, nil); err != nil {
		return nil, err
	}
	return q.see("/console/plans/"+id, "You cancelled the plan.")
}

func (c *Console) replayRun(q *request) (any, error) {
	var out struct {
		PlanID   string        `json:"plan_id"`
		IntentID string        `json:"intent_id"`
		Approval *bus.Approval `json:"approval"`
	}
	body := map[string]string{"from_node": q.PostFormValue("from_node"), "mode": q.PostFormValue("mode")}
	if err := q.post("/v1/runs/"+url.PathEscape(q.PathValue("id"))+"/replay", body, &out); err != nil {
		return nil, err
	}
	if out.Approval != nil {
		return q.see("/console/intents/"+out.IntentID, "The replay waits for people.")
	}
	return q.see("/console/plans/"+out.PlanID, "This is the replay.")
}

// planEvents is the stream of a plan's frames, for the progress of its calls. It ends after some
// minutes, as the stream of changes does.
func (c *Console) planEvents(q *request) (any, error) {
	leave, err := q.stream()
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(q.Context(), streamLife)
	defer cancel()
	a := edge.Pass(q.w, func(status int, _ http.Header) bool { return status >= http.StatusBadRequest })
	if err := c.serve(ctx, q.s.credentials, http.MethodGet, "/agent/plans/"+url.PathEscape(q.PathValue("id"))+"/events", nil, a); err != nil {
		return nil, err
	}
	return nil, errDone
}
