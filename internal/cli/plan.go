package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
)

func planList(c *command) {
	c.personFlags()
	page := c.pageFlags()
	status := c.Flags().String("status", "", "pending, planning, executing, replanning, complete or failed")
	c.answer = func([]string) (answer, error) {
		var plans catalog.PlanListResult
		err := c.get("/agent/plans"+page(map[string]string{"status": *status}), &plans)
		return answer{data: plans, note: nextPage(plans.Cursor), text: aligned(func(t io.Writer) {
			for _, p := range plans.Plans {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.PlanID, p.Status, p.CreatedAt.UTC().Format(time.RFC3339), oneLine(p.Task, 60))
			}
		})}, err
	}
}

func planShow(c *command) {
	c.personFlags()
	c.answer = func(args []string) (answer, error) {
		var p catalog.PlanView
		err := c.get("/agent/plans/"+url.PathEscape(args[0]), &p)
		return answer{data: p, text: planText(p)}, err
	}
}

func planText(p catalog.PlanView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan      %s\nasked by  %s\nasked     %s\ntask      %s\nstatus    %s, revision %d, %d replans\n",
		p.PlanID, printable(p.UserID), p.CreatedAt.UTC().Format(time.RFC3339), printable(p.Task), p.Status, p.Revision, p.ReplanCount)
	for _, s := range p.Steps {
		line := fmt.Sprintf("step %-4d %s: %s", s.Step, s.Status, oneLine(s.Task, 100))
		if s.FailureReason != "" {
			line += " (" + oneLine(s.FailureReason, 200) + ")"
		}
		fmt.Fprintln(&b, line)
		for _, f := range p.Facts {
			if f.Step == s.Step && s.Status == catalog.StepHeld && f.Status == "indeterminate" {
				fmt.Fprintf(&b, "waits     until it is known whether %s %s happened: look, then writ order resolve %s done|failed --reason TEXT\n", f.Type, oneLine(string(f.Args), 100), f.IntentID)
			}
		}
	}
	for _, u := range p.Usage {
		fmt.Fprintf(&b, "used      %s on %s: %d calls, %d tokens in, %d out, %.1f s\n",
			printable(u.Agent), printable(u.Model), u.Calls, u.InputTokens, u.OutputTokens, float64(u.LatencyMS)/1000)
	}
	switch {
	case p.Response != "":
		fmt.Fprintf(&b, "answer    %s\n", printable(p.Response))
	case p.Failure != nil:
		fmt.Fprintf(&b, "failed    %s\n", printable(p.Failure.Reason))
	}
	return b.String()
}

func planWatch(c *command) {
	c.personFlags()
	c.jsonFlag()
	c.run = func(args []string) error {
		return c.turn(args[0], func(to client.Client, t *turnView) error { return to.Watch(c.Context(), args[0], "", t.Take) })
	}
}

func planCancel(c *command) {
	c.personFlags()
	c.answer = func(args []string) (answer, error) {
		to, err := c.client()
		if err != nil {
			return answer{}, err
		}
		var said json.RawMessage
		err = to.Delete(c.Context(), "/agent/plans/"+url.PathEscape(args[0]), &said)
		return answer{data: said, text: args[0] + " cancelled\n"}, err
	}
}
