package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// ofRegistry is a mind whose agent of the registry is a function.
type ofRegistry struct {
	*mind
	agent string
	do    func(model.Request) *model.Response
}

func (r ofRegistry) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	if req.Agent != r.agent {
		return r.mind.Respond(ctx, req, on)
	}
	return r.do(req), nil
}

const clerkFile = `name: clerk
description: Closes tickets.
tools:
  - {server: crm, name: close_ticket}
limits: {time_limit_sec: 120}
`

// TestAgentStep: a planner gives a step to an agent of the registry, whose reply is the
// step's result and the answer. Killed in the middle of calls that nobody can undo the step
// goes on from its record, although the agents were replaced meanwhile.
func TestAgentStep(t *testing.T) {
	t.Parallel()
	for name, killAt := range map[string]int{"undisturbed": 0, "killed": 4} {
		t.Run(name, func(t *testing.T) {
			records, skills, reached := serveHeldCRM(t, "close_ticket", killAt)
			m := &mind{pick: []string{"list_tickets"}, plan: func(planning) model.Call {
				return steps(catalog.PlanStep{Step: 1, Task: "Close the first six tickets.", Skills: []string{}, Agent: "clerk", ReturnSpec: catalog.ReturnSpec{Shape: "string", Reason: "to tell"}})
			}}
			x := boot(t, ofRegistry{m, "clerk", closer(m)}, skills)
			x.holdNothing()
			x.kill()
			dir := t.TempDir()
			put := func(text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, "clerk.yaml"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put(clerkFile)
			x.args = append(x.args, "--agents", dir)
			x.start()
			id := x.post(`{"stream":true,"message":"Close the first six tickets."}`, accepted)
			want := fmt.Sprintf("%d closed, 0 unknown.", closings)
			if killAt > 0 {
				<-reached
				x.kill()
				put(clerkFile + "temperature: 0\n")
				x.start()
				x.resolve(x.unknown(id), "done")
			}
			v := x.finished(id)
			if v.Status != catalog.PlanComplete || v.Agent != "" || v.ReplanCount != 0 || v.Response != want {
				t.Errorf("plan %+v", v)
			}
			if s := v.Steps; len(s) != 1 || s[0].Agent != "clerk" || s[0].Status != catalog.StepDone || s[0].MemoryKey == "" || !slices.Equal(s[0].Skills, []string{"crm.close_ticket"}) {
				t.Errorf("steps %+v", s)
			}
			if calls := records.Calls("close_ticket"); calls != closings {
				t.Errorf("the CRM counted %d closings", calls)
			}
			var got []string
			for _, o := range x.records(id) {
				if o.Type == "agent.get" && o.Decision.Verdict == intents.Allow {
					got = append(got, o.Type)
				}
			}
			if len(got) < 3 { // the planner, the manager, the task
				t.Errorf("intents %v", got)
			}
		})
	}
}
