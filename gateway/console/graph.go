package console

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"aob.dev/writ/intents/catalog"
)

// graph is a plan as boxes and arrows, one column for each depth.
type graph struct {
	Width, Height int
	Boxes         []box
	Arrows        []arrow
}

type box struct {
	X, Y, TextX, TextY, StatusY, Step int
	Label                             string
	Status                            catalog.StepStatus
}

type arrow struct {
	X1, Y1, X2, Y2, TextX, TextY int
	Text                         string // condition of an edge of a run
	Off                          bool   // it does not hold
}

// Sizes of the graph, in units of the picture.
const (
	boxWidth, boxHeight = 170, 52
	gapX, gapY          = 130, 24
	maxLabel            = 20
	maxCondition        = 17
)

// before is a step that another one waits for, with the condition of an edge of a run.
type before struct {
	Step      int
	Condition string
	Off       bool
}

func (b before) String() string {
	out := strconv.Itoa(b.Step)
	if b.Condition != "" {
		out += " if " + b.Condition
	}
	if b.Off {
		out += " (it is not so)"
	}
	return out
}

// waits returns what a step waits for.
func waits(v catalog.PlanView, i int) (out []before) {
	s := v.Steps[i]
	if v.Run != nil {
		for _, e := range v.Run.Edges {
			if e.To == s.ID {
				if j := slices.IndexFunc(v.Steps, func(x catalog.StepView) bool { return x.ID == e.From }); j >= 0 {
					out = append(out, before{v.Steps[j].Step, e.Condition, e.Holds != nil && !*e.Holds})
				}
			}
		}
		return out
	}
	numbers := slices.Concat(s.After, s.Reads())
	if len(s.After) == 0 && !s.Parallel && i > 0 {
		numbers = append(numbers, v.Steps[i-1].Step)
	}
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		out = append(out, before{Step: n})
	}
	return out
}

// cut is the beginning of a text.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// graphOf places each step to the right of all that it waits for. A cycle, which no plan has,
// would be drawn as found.
func graphOf(v catalog.PlanView) (g graph) {
	depth, row := map[int]int{}, map[int]int{}
	for range v.Steps { // a step's depth is final when those before it are
		moved := false
		for i, s := range v.Steps {
			for _, b := range waits(v, i) {
				if n := b.Step; n != s.Step && depth[n]+1 > depth[s.Step] && depth[n] < len(v.Steps) {
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
		x, y := d*(boxWidth+gapX)+1, row[d]*(boxHeight+gapY)+1
		row[d]++
		b := box{x, y, x + 8, y + 21, y + 41, s.Step, strconv.Itoa(s.Step) + " " + cut(cmp.Or(s.ID, s.Task), maxLabel), s.Status}
		at[s.Step], g.Boxes = b, append(g.Boxes, b)
		g.Width, g.Height = max(g.Width, x+boxWidth+1), max(g.Height, y+boxHeight+1)
	}
	for i, s := range v.Steps {
		for _, b := range waits(v, i) {
			if from, ok := at[b.Step]; ok {
				a := arrow{X1: from.X + boxWidth, Y1: from.Y + boxHeight/2, X2: at[s.Step].X - 2, Y2: at[s.Step].Y + boxHeight/2, Text: b.Condition, Off: b.Off}
				if r := []rune(a.Text); len(r) > maxCondition {
					a.Text = "…" + string(r[len(r)-maxCondition+1:]) // conditions differ in their ends
				}
				a.TextX, a.TextY = a.X1+6, a.Y2-8
				if a.Y2 > a.Y1 {
					a.TextY = a.Y2 + 16 // below an arrow that descends
				}
				g.Arrows = append(g.Arrows, a)
			}
		}
	}
	return g
}

// peopleWaits are the times for which intents of a plan waited for people.
type peopleWaits []peopleWait

type peopleWait struct {
	Step     int // 0: of no step that the plan has now
	From, To time.Time
}

// of is how long a step waited. Waits at the same time count once.
func (all peopleWaits) of(step int) (d time.Duration) {
	var until time.Time
	for _, w := range all {
		if w.Step == step && w.To.After(until) {
			if w.From.After(until) {
				until = w.From
			}
			d += w.To.Sub(until)
			until = w.To
		}
	}
	return d
}

// stepsOf are the steps of tasks. A step that was held has had several.
func stepsOf(events []event) map[string]int {
	out := map[string]int{}
	for _, e := range events {
		var of struct {
			Task string `json:"task_id"`
			Step int    `json:"step_index"`
		}
		if e.Type == "subagent_b.spawned" && json.Unmarshal(e.Payload, &of) == nil {
			out[of.Task] = of.Step
		}
	}
	return out
}

// waitsForPeople reads them from the events of a plan. What is not decided waits until the end.
func waitsForPeople(events []event, steps map[string]int, end time.Time) (out peopleWaits) {
	at := map[string]int{} // in out, by intent_id
	for _, e := range events {
		id := e.IntentID
		var of struct {
			Held     string `json:"held_intent_id"`
			Decision string `json:"decision"`
		}
		_ = json.Unmarshal(e.Payload, &of) // others have none of these
		switch e.Type {
		case "approval.requested":
			at[id], out = len(out), append(out, peopleWait{steps[e.TaskID], e.At, end})
			continue
		case "approval.decided":
			if of.Decision == catalog.DecisionApprove {
				continue // it may need more than one
			}
			id = of.Held
		case "approval.released", "approval.expired", "intent.failed":
		default:
			continue
		}
		if i, waits := at[id]; waits {
			out[i].To = e.At
			delete(at, id)
		}
	}
	return out
}

// waterfall shows when the steps of a plan ran and when they waited for people.
type waterfall struct {
	Width, Height int
	Rows          []line
	Bars          []bar
}

type line struct {
	Y     int
	Label string
}

// bar of a row. Its class is the status of a step, or planning, or wait.
type bar struct {
	X, Y, Width int
	Class       string
}

// Sizes of the waterfall.
const (
	barsX, barsWidth = 190, 800
	rowHeight        = 28
)

func waterfallOf(v catalog.PlanView, people peopleWaits, end time.Time) (w waterfall) {
	all := max(end.Sub(v.CreatedAt), time.Millisecond)
	row := func(label string) int {
		y := len(w.Rows) * rowHeight
		w.Rows = append(w.Rows, line{y + 18, cut(label, maxLabel)})
		return y + 4
	}
	span := func(y int, from, to time.Time, class string) {
		x := int(barsWidth * max(0, from.Sub(v.CreatedAt)) / all)
		width := int(barsWidth * max(0, to.Sub(from)) / all)
		w.Bars = append(w.Bars, bar{barsX + min(x, barsWidth), y, max(2, min(width, barsWidth-x)), class})
	}
	first := end
	for _, s := range v.Steps {
		if s.StartedAt != nil && s.StartedAt.Before(first) {
			first = *s.StartedAt
		}
	}
	y := row("planning")
	span(y, v.CreatedAt, first, "planning")
	shown := func(step int) {
		for _, p := range people {
			if p.Step == step {
				span(y, p.From, p.To, "wait")
			}
		}
	}
	shown(0)
	for _, s := range v.Steps {
		y = row(strconv.Itoa(s.Step) + " " + cmp.Or(s.ID, s.Task))
		if s.StartedAt != nil {
			span(y, *s.StartedAt, *cmp.Or(s.FinishedAt, &end), string(s.Status))
		}
		shown(s.Step)
	}
	w.Width, w.Height = barsX+barsWidth, len(w.Rows)*rowHeight
	return w
}

// lasted is a duration for people.
func lasted(d time.Duration) string {
	switch {
	case d >= 10*time.Minute:
		return d.Round(time.Minute).String()
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}
