package cli

import (
	"encoding/json"
	"net/url"

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
		return answer{data: plans, note: nextPage(plans.Cursor), text: render("plans.table", plans)}, err
	}
}

func planShow(c *command) {
	c.personFlags()
	c.answer = func(args []string) (answer, error) {
		var p catalog.PlanView
		err := c.get(planPath(args[0]), &p)
		return answer{data: p, text: planText(p)}, err
	}
}

func planText(p catalog.PlanView) string { return render("plan", p) }

func planWatch(c *command) {
	c.personFlags()
	c.jsonFlag()
	c.run = func(args []string) error {
		return c.turn(args[0], func(to client.Client, t *turnView) error { return to.Watch(c.Context(), args[0], "", t.Take) })
	}
}

func planPath(id string) string { return "/agent/plans/" + url.PathEscape(id) }

// What ends a plan, and a run.
var planCancel, workflowCancel = cancels(planPath), cancels(runPath)

func cancels(path func(id string) string) func(*command) {
	return func(c *command) {
		c.personFlags()
		c.answer = func(args []string) (answer, error) {
			var said json.RawMessage
			err := c.remove(path(args[0]), &said)
			return answer{data: said, text: args[0] + " cancelled\n"}, err
		}
	}
}
