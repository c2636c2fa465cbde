package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

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

// planPage is a plan with its graph, timeline and intents.
type planPage struct {
	catalog.PlanView
	Graph  graph
	Events []event
	List   intentList
}

// event of a plan's timeline.
type event struct {
	Type    string          `json:"event_type"`
	At      string          `json:"ts"`
	TaskID  string          `json:"task_id"`
	Payload json.RawMessage `json:"payload"`
}

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
	p.Events, p.Graph = trace.Events, graphOf(p.PlanView)
	var err error
	p.List, err = q.intents(filter{"plan_id": id})
	return p, err
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

// graph is a plan as boxes and lines, one column for each depth.
type graph struct {
	Width, Height int
	Boxes         []box
	Lines         []line
}

type box struct {
	X, Y, TextX, TextY, StatusY int
	Label, Status               string
}

type line struct{ X1, Y1, X2, Y2 int }

// Sizes of the graph, in units of the picture.
const (
	boxWidth, boxHeight = 170, 52
	gapX, gapY          = 50, 16
	maxLabel            = 20
)

// waits returns the numbers of the steps that a step waits for.
func waits(v catalog.PlanView, i int) (out []int) {
	s := v.Steps[i]
	if v.Run != nil {
		for _, e := range v.Run.Edges {
			if e.To == s.ID {
				if j := slices.IndexFunc(v.Steps, func(x catalog.StepView) bool { return x.ID == e.From }); j >= 0 {
					out = append(out, v.Steps[j].Step)
				}
			}
		}
		return out
	}
	out = append(append(out, s.After...), s.Inputs...)
	if s.InputFromStep > 0 {
		out = append(out, s.InputFromStep)
	}
	if len(s.After) == 0 && !s.Parallel && i > 0 {
		out = append(out, v.Steps[i-1].Step)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// graphOf places each step to the right of all that it waits for. A cycle, which no plan has,
// would be drawn as found.
func graphOf(v catalog.PlanView) (g graph) {
	depth, row := map[int]int{}, map[int]int{}
	for range v.Steps { // a step's depth is final when those before it are
		moved := false
		for i, s := range v.Steps {
			for _, n := range waits(v, i) {
				if n != s.Step && depth[n]+1 > depth[s.Step] && depth[n] < len(v.Steps) {
					depth[s.Step], moved = depth[n]+1, true
				}
			}
		}
		if !moved {
			break
		}
	}
	at := map[int]box{}
	for _, s := range v.Steps {
		d := depth[s.Step]
		label := s.ID
		if label == "" {
			label = s.Task
		}
		if r := []rune(label); len(r) > maxLabel {
			label = string(r[:maxLabel-1]) + "…"
		}
		x, y := d*(boxWidth+gapX)+1, row[d]*(boxHeight+gapY)+1
		row[d]++
		b := box{x, y, x + 8, y + 21, y + 41, strconv.Itoa(s.Step) + " " + label, string(s.Status)}
		at[s.Step], g.Boxes = b, append(g.Boxes, b)
		g.Width, g.Height = max(g.Width, x+boxWidth+1), max(g.Height, y+boxHeight+1)
	}
	for i, s := range v.Steps {
		for _, n := range waits(v, i) {
			if from, ok := at[n]; ok {
				to := at[s.Step]
				g.Lines = append(g.Lines, line{from.X + boxWidth, from.Y + boxHeight/2, to.X, to.Y + boxHeight/2})
			}
		}
	}
	return g
}
