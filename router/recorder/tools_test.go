package recorder_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
	"aob.dev/writ/storage"
)

// toolRows are the rows of tools in agent_messages, as "type name id content args".
func toolRows(t *testing.T, d storage.Documents) (out []string) {
	t.Helper()
	for _, doc := range dump(t, d, "default")["default/agent_messages"] {
		var row struct {
			Type    string  `json:"message_type"`
			Content *string `json:"content"`
			Calls   struct {
				Name, ID string
				Args     json.RawMessage
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(doc.Body, &row); err != nil {
			t.Fatal(err)
		}
		content := "null"
		if row.Content != nil {
			content = *row.Content
		}
		out = append(out, row.Type+" "+row.Calls.Name+" "+row.Calls.ID+" "+content+" "+string(row.Calls.Args))
	}
	return out
}

// TestToolRows: a call of an agent's makes a row, and so does what came of it. Orders that
// no call made have none, and an erasure takes the rows away.
func TestToolRows(t *testing.T) {
	live := documents(t)
	w, f := woken(t, live)
	w.Pin("pay", catalog.Once)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`"paid"`)})))
	w.Bus.On("memory.query", routertest.Always(routertest.Done(catalog.MemoryQueryResult{Hits: []catalog.MemoryHit{}, By: catalog.ByWords})))
	task := w.BegunAgent("p1", "general").Started(1)
	at := func(call string, o routertest.Order) routertest.Order {
		o.Ctx.Call = call
		return o
	}
	paid := w.OK(at("1.0", task.CallOrder("pay", `{"to":"ben"}`)))
	w.OK(at("2.0", task.Order("memory.query", catalog.MemoryQuery{Mode: catalog.Search, Text: "boat"})))
	w.Bus.On("skill.call", routertest.Always(routertest.Failed(intents.ExecutorFailed)))
	w.Want(w.Do(at("3.0", task.CallOrder("pay", `{"to":"eve"}`))), intents.ExecutorFailed)
	w.OK(task.Order("skill.load", catalog.SkillLoad{Skill: "pay"}))
	w.Want(w.Do(at("4.0", task.CallOrder("other", `{}`))), intents.TaskScope)
	w.Want(task.Reply("These."), intents.OK)
	w.Want(task.Complete(), intents.OK)
	f.caughtUp()
	want := []string{
		`tool_call pay 1.1.0 null {"input":{"to":"ben"},"skill":"pay"}`, `tool_response pay 1.1.0 {"output":"paid"} `,
		`tool_call memory.query 1.2.0 null {"mode":"SEARCH","text":"boat"}`, `tool_response memory.query 1.2.0 {"hits":[],"by":"words"} `,
		`tool_call pay 1.3.0 null {"input":{"to":"eve"},"skill":"pay"}`, `tool_response pay 1.3.0 EXECUTOR_FAILED: as the test wants it `,
	}
	if d := cmp.Diff(want, toolRows(t, live)); d != "" {
		t.Error(d)
	}
	w.Want(w.Admin("record.erase", catalog.RecordErase{Tenant: "default", IntentID: paid.IntentID, Position: *paid.Position, Parts: []string{catalog.ErasesResult}, Reason: "asked for"}), intents.OK)
	f.caughtUp()
	if d := cmp.Diff(append(want[:1:1], want[2:]...), toolRows(t, live)); d != "" {
		t.Error(d)
	}
	f.stop()
	again := documents(t)
	g := follow(t, w, again)
	g.caughtUp()
	g.stop()
	if d := cmp.Diff(toolRows(t, live), toolRows(t, again)); d != "" {
		t.Errorf("made again: %s", d)
	}
}
