package cli

import (
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
)

// traced is a plan as its records tell it: nothing but the journal is needed.
type traced struct {
	PlanID  string        `json:"plan_id"`
	TraceID string        `json:"trace_id"`
	UserID  string        `json:"user_id"`
	Began   time.Time     `json:"began"`
	TookMS  int64         `json:"took_ms"`
	Orders  []tracedOrder `json:"orders"`
}

type tracedOrder struct {
	Position int64        `json:"position"`
	IntentID string       `json:"intent_id"`
	Type     string       `json:"type"`
	Step     int          `json:"step,omitempty"`
	Task     string       `json:"task_id,omitempty"`
	Ask      string       `json:"ask,omitempty"` // path of the call that asked for the task
	Code     intents.Code `json:"code"`          // of the outcome, where there is one
	AtMS     int64        `json:"at_ms"`         // after the first order
	TookMS   int64        `json:"took_ms"`       // from its decision to its outcome
	Open     bool         `json:"open,omitempty"`
}

func traceCommand(c *command) {
	c.dataFlag()
	c.answer = func(args []string) (a answer, err error) {
		err = c.archive(func(in *datadir.Archive) error {
			t, err := readTrace(c, in, args[0])
			a = answer{data: t, text: traceText(t)}
			return err
		})
		return a, err
	}
}

func readTrace(c *command, in *datadir.Archive, plan string) (traced, error) {
	t, at := traced{PlanID: plan}, map[int64]int{}
	for s, err := range audit.Read(c.Context(), in.Records, 0) {
		if err != nil {
			return t, err
		}
		when, err := time.Parse(time.RFC3339, s.At)
		if err != nil {
			return t, fmt.Errorf("record %d: %w", s.Position, err)
		}
		if s.Of != nil {
			if i, ours := at[*s.Of]; ours && s.Code != "" {
				o := &t.Orders[i]
				o.Code, o.Open = s.Code, false
				o.TookMS = when.Sub(t.Began).Milliseconds() - o.AtMS
				t.TookMS = max(t.TookMS, o.AtMS+o.TookMS)
			}
			continue
		}
		if s.Order == nil || s.Plan != plan {
			continue
		}
		if len(t.Orders) == 0 {
			t.Began, t.UserID, t.TraceID = when, s.User, s.Order.TraceID
		}
		o := tracedOrder{Position: s.Position, IntentID: s.IntentID, Type: s.Type, Code: s.Code, AtMS: when.Sub(t.Began).Milliseconds(), Open: s.Code == intents.OK && dispatched(s.Type)}
		if x := s.Order.Context; x != nil {
			o.Step, o.Task, o.Ask = x.Step, x.TaskID, x.Ask
		}
		at[s.Position] = len(t.Orders)
		t.Orders = append(t.Orders, o)
		t.TookMS = max(t.TookMS, o.AtMS)
	}
	if len(t.Orders) == 0 {
		return t, fmt.Errorf("no order of plan %s is in the record: writ plan list shows those that are there", plan)
	}
	return t, nil
}

// dispatched says whether orders of a type have an outcome of their own.
func dispatched(typ string) bool {
	row, ok := catalog.Builtin().Lookup(typ)
	return !ok || row.Executor != catalog.ExecutorRouter
}

// traceWidth is how many columns the whole time of a plan has.
const traceWidth = 32

func traceText(t traced) string {
	if len(t.Orders) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "plan   %s\nuser   %s\ntrace  %s\nbegan  %s, took %d ms, %d orders\n\n", printable(t.PlanID), printable(t.UserID), printable(t.TraceID), t.Began.UTC().Format(time.RFC3339), t.TookMS, len(t.Orders))
	whole := max(t.TookMS, 1)
	for _, o := range t.Orders {
		from := int(o.AtMS * (traceWidth - 1) / whole)
		wide := max(1, int(o.TookMS*traceWidth/whole))
		bar := strings.Repeat(" ", from) + strings.Repeat("=", min(wide, traceWidth-from))
		code := string(o.Code)
		if o.Open {
			code = "open"
		}
		fmt.Fprintf(&b, "%7d %8d ms %6d ms  |%-*s|  %s%s  %s\n", o.Position, o.AtMS, o.TookMS, traceWidth, bar, strings.Repeat("  ", depth(o)), printable(o.Type), code)
	}
	return b.String()
}

// depth of an order below its plan: a step's are below it, and those of an asked agent below
// that.
func depth(o tracedOrder) int {
	if o.Task == "" {
		return 0
	}
	if o.Ask == "" {
		return 1
	}
	return 2 + strings.Count(o.Ask, "/")
}
