package cli

import (
	"encoding/json"
	"net/http"
	"net/url"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
)

const (
	plansPath = "/agent/plans"
	runsPath  = "/v1/runs"
)

func runPath(id string) string { return runsPath + "/" + url.PathEscape(id) }

var planRows = []row{
	{use: "list", short: "List your plans, newest first", make: asks(request[catalog.PlanListResult]{
		path: plansPath, page: true, query: []param{{flag: "status", help: "pending, planning, executing, replanning, complete or failed"}},
		text: shown[catalog.PlanListResult]("plans.table"), none: "no plan of yours is there: writ run QUESTION begins one",
	})},
	{use: "show PLAN_ID", short: "Show a plan, its steps and how it ended", make: asks(request[catalog.PlanView]{
		path: plansPath + "/{}", ids: &ownPlans, text: shown[catalog.PlanView]("plan"),
	})},
	{use: "watch PLAN_ID", short: "Follow a plan to its answer", make: planWatch},
	{use: "logs PLAN_ID", short: "Show what scripts and skill servers wrote in a plan or run, and follow it", make: logsCommand},
	{use: "cancel PLAN_ID", short: "End a plan without its answer", make: cancels(plansPath, &ownPlans)},
}

// cancels ends a plan, or a run.
func cancels(path string, ids *idSource) func(*command) {
	return asks(request[json.RawMessage]{
		method: http.MethodDelete, path: path + "/{}", ids: ids,
		text: func(args []string, _ json.RawMessage) string { return args[0] + " cancelled\n" },
	})
}

func planWatch(c *command) {
	c.personFlags()
	c.ids = &ownPlans // runs, too
	c.jsonFlag()
	c.run = func(args []string) error {
		return c.turn(args[0], func(to client.Client, t *turnView) error { return to.Watch(c.Context(), args[0], "", t.Take) })
	}
}
