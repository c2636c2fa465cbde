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

// planTrace is a plan as its records tell it: nothing but the journal is needed.
type planTrace struct {
	PlanID  string         `json:"plan_id"`
	TraceID string         `json:"trace_id"`
	UserID  string         `json:"user_id"`
	Began   time.Time      `json:"began"`
	TookMS  int64          `json:"took_ms"`
	Intents []tracedIntent `json:"intents"`
}

type tracedIntent struct {
	Position int64        `json:"position"`
	IntentID string       `json:"intent_id"`
	Type     string       `json:"type"`
	Step     int          `json:"step,omitempty"`
	Task     string       `json:"task_id,omitempty"`
	Ask      string       `json:"ask,omitempty"` // path of the call that asked for the task
	Code     intents.Code `json:"code"`          // of the outcome, where there is one
	AtMS     int64        `json:"at_ms"`         // after the first intent
	TookMS   int64        `json:"took_ms"`       // from its decision to its outcome
	Open     bool         `json:"open,omitempty"`
}

func traceCommand(c *command) {
	c.dataFlag()
	c.ids = &recordedPlans
	c.answer = func(args []string) (a answer, err error) {
		err = c.archive(func(in *datadir.Archive) error {
			t, err := readTrace(c, in, args[0])
			a = answer{data: t, text: traceText(t)}
			return err
		})
		return a, err
	}
}

func readTrace(c *command, in *datadir.Archive, plan string) (planTrace, error) {
	t, at := planTrace{PlanID: plan}, map[int64]int{}
	for s, err := range audit.Read(c.Context(), in.Records, 0) {
		if err != nil {
			return t, err
		}
		when, err := time.Parse(time.RFC3339, s.At)
		if err != nil {
			return t, fmt.Errorf("record %d: %w", s.Position, err)
		}
		if s.Target != nil {
			if i, ours := at[*s.Target]; ours && s.Code != "" {
				o := &t.Intents[i]
				o.Code, o.Open = s.Code, false
				o.TookMS = when.Sub(t.Began).Milliseconds() - o.AtMS
				t.TookMS = max(t.TookMS, o.AtMS+o.TookMS)
			}
			continue
		}
		if s.Intent == nil || s.Plan != plan {
			continue
		}
		if len(t.Intents) == 0 {
			t.Began, t.UserID, t.TraceID = when, s.User, s.Intent.TraceID
		}
		o := tracedIntent{Position: s.Position, IntentID: s.IntentID, Type: s.Type, Code: s.Code, AtMS: when.Sub(t.Began).Milliseconds(), Open: s.Code == intents.OK && dispatched(s.Type)}
		if x := s.Intent.Context; x != nil {
			o.Step, o.Task, o.Ask = x.Step, x.TaskID, x.Ask
		}
		at[s.Position] = len(t.Intents)
		t.Intents = append(t.Intents, o)
		t.TookMS = max(t.TookMS, o.AtMS)
	}
	if len(t.Intents) == 0 {
		return t, fmt.Errorf("no intent of plan %s is in the record: writ plan list shows those that are there", plan)
	}
	return t, nil
}

// dispatched reports whether intents of a type have an outcome of their own.
func dispatched(typ string) bool {
	row, ok := catalog.Builtin().Lookup(typ)
	return !ok || row.Executor != catalog.ExecutorRouter
}

// traceWidth is how many columns the whole time of a plan has.
const traceWidth = 32

func traceText(t planTrace) string {
	if len(t.Intents) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "plan   %s\nuser   %s\ntrace  %s\nbegan  %s, took %d ms, %d intents\n\n", printable(t.PlanID), printable(t.UserID), printable(t.TraceID), t.Began.UTC().Format(time.RFC3339), t.TookMS, len(t.Intents))
	whole := max(t.TookMS, 1)
	for _, o := range t.Intents {
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

// depth of an intent below its plan: a step's are below it, and those of an asked agent below
// that.
func depth(o tracedIntent) int {
	if o.Task == "" {
		return 0
	}
	if o.Ask == "" {
		return 1
	}
	return 2 + strings.Count(o.Ask, "/")
}
