package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/clock"
)

const (
	plansPath = "/agent/plans"
	runsPath  = "/v1/runs"
)

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

func logsCommand(c *command) {
	c.personFlags()
	c.ids = &ownPlans // runs, too
	c.jsonFlag()
	follow := c.Flags().BoolP("follow", "f", false, "wait for further lines until the run ends")
	errorsOnly := c.Flags().Bool("errors", false, "only errors")
	node := c.Flags().String("node", "", "only lines of this node, or step with this id")
	c.run = func(args []string) error {
		to, err := c.client()
		if err != nil {
			return err
		}
		of := catalog.LogsStream{RunID: args[0], NodeID: *node}
		if *errorsOnly {
			of.Filter = catalog.LogsErrors
		}
		lines := 0
		err = c.follow(*follow, func(after string, fn func(string, json.RawMessage) error) error {
			return to.Logs(c.Context(), of, after, *follow, func(cursor string, line json.RawMessage) error {
				lines++
				return fn(cursor, line)
			})
		})
		if err == nil && lines == 0 {
			fmt.Fprintln(c.std.Err, "nothing to show")
		}
		return err
	}
}

// logPoll is how long a follower waits before it asks again.
const logPoll = time.Second

// follow prints a log. Where it breaks off, or writ is started again, it goes on behind the last
// line.
func (c *command) follow(again bool, read func(after string, fn func(string, json.RawMessage) error) error) error {
	after, told := "", false
	for first := true; ; first = false {
		err := read(after, func(cursor string, line json.RawMessage) error {
			after, told = cursor, false
			return c.printLine(line)
		})
		if !again || !passes(err) || first && !errors.Is(err, client.ErrLogCut) {
			return err
		}
		if !told {
			fmt.Fprintf(c.std.Err, "writ: %v; trying again\n", err)
			told = true
		}
		if clock.Sleep(c.Context(), logPoll) != nil {
			return nil //nolint:nilerr // the user has left
		}
	}
}

// passes reports whether an error may be temporary.
func passes(err error) bool {
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests
	}
	return (errors.Is(err, client.ErrLogCut) || errors.Is(err, client.ErrNoAnswer)) && !errors.Is(err, context.Canceled)
}

// printLine prints a line: when, its level where it is no plain one, where it comes from, and its text.
func (c *command) printLine(raw json.RawMessage) error {
	if c.asJSON {
		_, err := fmt.Fprintf(c.std.Out, "%s\n", raw)
		return err
	}
	var l catalog.LogLine
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	level := ""
	if l.Level != intents.LevelInfo {
		level = string(l.Level) + ": "
	}
	at := ""
	if l.NodeID != "" {
		at = l.NodeID + " "
	} else if l.Step > 0 {
		at = fmt.Sprintf("step %d ", l.Step)
	}
	_, err := fmt.Fprintf(c.std.Out, "%s %s%s %s%s\n", intents.FormatTime(l.At), printable(at), printable(l.Source), level, printable(l.Text))
	return err
}
