package router_test

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestInfraTools: memory, files and scripts are for the task of every step, whatever skills it may
// call, and also if it may call none. Skills are not.
func TestInfraTools(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	w.Pin("rank", catalog.Pure)
	p := w.NewPlan("p")
	w.Want(p.Open(), intents.OK)
	w.Want(p.Claim(), intents.OK)
	steps := routertest.Steps(1, "feed", "rank")
	steps[1].Skills = []string{}
	w.Want(p.Plan(steps), intents.OK)
	for step, skills := range [][]string{{"feed"}, {}} {
		task := p.Started(step + 1)
		for _, tool := range []struct {
			typ  string
			args any
		}{
			{"write_memory", catalog.WriteMemory{Label: "rows", Data: json.RawMessage(`[1]`)}},
			{"read_memory", catalog.ReadMemory{Key: task.MemoryKey("rows")}}, // what it has written
			{"memory.query", catalog.MemoryQuery{Text: "rows", TopK: 3}},
			{"write_temp", catalog.WriteTemp{Data: json.RawMessage(`[1]`)}},
			{"read_lines", catalog.ReadLines{FileID: "f_1", N: 20}},
			{"exec_python", catalog.ExecPython{Script: "print([1])"}},
		} {
			if a := w.Do(task.Intent(tool.typ, tool.args)); a.Decision == nil || a.Decision.Code != intents.OK {
				t.Errorf("step with %q: %s is %s: %s", skills, tool.typ, a.Code, a.Reason)
			}
		}
		refused(t, task.Call("rank", `{}`), intents.TaskScope, "not among those")
		if len(skills) == 0 {
			refused(t, task.Call("feed", `{}`), intents.TaskScope, "not among those")
		}
		task.Done()
	}
}
