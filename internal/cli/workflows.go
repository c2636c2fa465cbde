package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
)

var workflowRows = []row{
	{use: "list", short: "List the workflows, and your runs of them", make: workflowList},
	{use: "start WORKFLOW_ID", short: "Start a run", make: workflowStart},
	{use: "show RUN_ID", short: "Show a run: its nodes, and the edges that lead to them", make: asks(request[catalog.PlanView]{
		path: runsPath + "/{}", ids: &ownRuns, text: shown[catalog.PlanView]("run.table"),
	})},
	{use: "watch RUN_ID", short: "Follow a run to its end", make: planWatch},
	{use: "logs RUN_ID", short: "Show what scripts and skill servers wrote in a run, and follow it", make: logsCommand},
	{use: "cancel RUN_ID", short: "End a run", make: cancels(runsPath, &ownRuns)},
	{use: "patch RUN_ID FILE", short: "Add nodes and edges to a run", make: asks(request[openedRun]{
		method: http.MethodPost, path: runsPath + "/{}/patch", ids: &ownRuns, body: workflowPatch,
		text: func(args []string, o openedRun) string {
			if o.Approval != nil {
				return "it waits for people to approve it: writ approvals show " + o.IntentID + "\n"
			}
			return "patched: writ workflow show " + args[0] + "\n"
		},
	})},
	{use: "replay RUN_ID --from NODE", short: "Repeat a run from a node on", make: workflowReplay},
}

// workflowPage has the definitions, and a page of runs.
type workflowPage struct {
	Workflows []workflowRow      `json:"workflows"`
	Runs      []catalog.PlanView `json:"runs"`
	Cursor    string             `json:"cursor,omitempty"`
}

type workflowRow struct {
	WorkflowID string `json:"workflow_id"`
	Version    string `json:"version"`
	Nodes      int    `json:"nodes"`
}

func workflowList(c *command) {
	c.personFlags()
	query := c.queryFlags(true, []param{{flag: "status", help: "only runs in this state: pending, executing, complete or failed"}, {flag: "workflow", member: "workflow_id", help: "only this workflow and its runs"}})
	c.answer = func([]string) (answer, error) {
		var rows []catalog.SchemaRow
		var runs catalog.PlanListResult
		err := c.get("/schemas/?kind=workflow&name="+url.QueryEscape(c.Flags().Lookup("workflow").Value.String()), &rows)
		if err == nil {
			err = c.get(runsPath+query(), &runs)
		}
		if err != nil {
			return answer{}, err
		}
		all := workflowPage{[]workflowRow{}, append([]catalog.PlanView{}, runs.Plans...), runs.Cursor}
		for _, r := range rows {
			var graph struct {
				Version string            `json:"version"`
				Nodes   []json.RawMessage `json:"nodes"`
			}
			_ = json.Unmarshal(r.Schema, &graph) // without it only the name is known
			all.Workflows = append(all.Workflows, workflowRow{r.Name, graph.Version, len(graph.Nodes)})
		}
		return answer{data: all, note: nextPage(runs.Cursor), text: render("workflows.table", all), none: "no workflow is in force and no run is yours: writ registry push DIR puts workflows in force"}, nil
	}
}

// openedRun is the answer to opening a run.
type openedRun struct {
	PlanID   string        `json:"plan_id,omitempty"`
	Status   string        `json:"status,omitempty"`
	IntentID string        `json:"intent_id"`
	Approval *bus.Approval `json:"approval,omitempty"`
}

func workflowStart(c *command) {
	c.personFlags()
	c.ValidArgsFunction = firstWord(c.completes(c.schemaWords(catalog.KindWorkflow)))
	c.jsonFlag()
	given := c.Flags().StringArray("input", nil, "an input as NAME=VALUE; a VALUE that is JSON is taken as such (repeatable)")
	file := c.Flags().String("inputs", "", "file with all inputs, a JSON object; - reads standard input")
	priority := c.Flags().String("priority", "", "low, normal or high: among runs that wait for their driver")
	wait := c.Flags().Bool("wait", false, "follow the run to its end; exit 1: it failed")
	c.run = func(args []string) error {
		inputs, err := c.inputs(*file, *given)
		if err != nil {
			return err
		}
		return c.open(runsPath, map[string]any{"workflow_id": args[0], "inputs": inputs, "priority": *priority}, *wait)
	}
}

// inputs of a run: those of a file, and those of flags.
func (c *command) inputs(file string, given []string) (map[string]any, error) {
	out := map[string]any{}
	if file != "" {
		raw, err := c.input([]string{file})
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		if err != nil {
			return nil, malformed(fmt.Errorf("--inputs: %w", err))
		}
	}
	for _, g := range given {
		name, text, ok := strings.Cut(g, "=")
		if !ok {
			return nil, usage(fmt.Errorf("--input %q: write NAME=VALUE", g))
		}
		var value any = text
		if json.Valid([]byte(text)) {
			value = json.RawMessage(text)
		}
		out[name] = value
	}
	return out, nil
}

// open opens a run and prints its id, or follows it to its end.
func (c *command) open(path string, body map[string]any, wait bool) error {
	for name, value := range body {
		if value == "" || value == false {
			delete(body, name)
		}
	}
	var o openedRun
	if err := c.post(path, body, &o); err != nil {
		return err
	}
	switch {
	case o.Approval != nil && !c.asJSON:
		fmt.Fprintf(c.std.Err, "it waits for people to approve it: writ approvals show %s\n", o.IntentID)
		return nil
	case wait && o.Approval == nil:
		return c.turn(o.PlanID, func(to client.Client, t *turnView) error { return to.Watch(c.Context(), o.PlanID, "", t.Take) })
	case c.asJSON:
		return printJSON(c.std.Out, o)
	}
	_, err := fmt.Fprintln(c.std.Out, o.PlanID)
	return err
}

// workflowPatch reads a patch.
func workflowPatch(c *command) func(args []string) (any, error) {
	return func(args []string) (any, error) {
		raw, err := c.input(args[1:])
		if err == nil && !json.Valid(raw) {
			err = malformed(errors.New("the patch is no JSON"))
		}
		return json.RawMessage(raw), err
	}
}

func workflowReplay(c *command) {
	c.personFlags()
	c.ids = &ownRuns
	c.jsonFlag()
	from := c.Flags().String("from", "", "node from which on the run is repeated")
	mode := c.Flags().String("mode", catalog.ReplayFreeze, "freeze: on the recorded inputs, and compare; shadow: without effects, on inputs computed anew")
	repeat := c.Flags().Bool("repeat-effects", false, "run nodes with effects again; people have to approve it")
	wait := c.Flags().Bool("wait", false, "follow the run to its end; exit 1: it failed")
	c.mustGive("from")
	c.run = func(args []string) error {
		return c.open(runsPath+"/"+url.PathEscape(args[0])+"/replay", map[string]any{"from_node": *from, "mode": *mode, "repeat_effects": *repeat}, *wait)
	}
}
