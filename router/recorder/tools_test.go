package recorder_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// toolRows are the rows of tools in agent_messages, as "type name (skill) id content args".
func toolRows(t *testing.T, d storage.Documents) (out []string) {
	t.Helper()
	for _, doc := range dump(t, d, "default")["default/agent_messages"] {
		var row struct {
			Type    string  `json:"message_type"`
			Content *string `json:"content"`
			Calls   struct {
				Name, Skill, ID string
				Args            json.RawMessage
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(doc.Body, &row); err != nil {
			t.Fatal(err)
		}
		content := "null"
		if row.Content != nil {
			content = *row.Content
		}
		if row.Calls.Skill != "" {
			row.Calls.Name += " (" + row.Calls.Skill + ")"
		}
		out = append(out, row.Type+" "+row.Calls.Name+" "+row.Calls.ID+" "+content+" "+string(row.Calls.Args))
	}
	return out
}

// TestToolRows: a call of an agent makes a row, and so does its result. Other intents have none,
// and an erasure removes the rows.
func TestToolRows(t *testing.T) {
	live := documents(t)
	w, f := woken(t, live)
	w.Pin("pay", catalog.Once)
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`"paid"`)})))
	w.Bus.On("memory.query", routertest.Always(routertest.Done(catalog.MemoryQueryResult{Hits: []catalog.MemoryHit{}, By: catalog.ByWords})))
	task := w.BegunAgent("p1", "general").Started(1)
	at := func(call string, o routertest.Intent) routertest.Intent {
		o.Ctx.Call = call
		return o
	}
	first := at("1.0", task.CallIntent("pay", `{"to":"ben"}`))
	first.Ctx.Tool = "pay_bill"
	paid := w.OK(first)
	w.OK(at("2.0", task.Intent("memory.query", catalog.MemoryQuery{Mode: catalog.Search, Text: "boat"})))
	w.Bus.On("skill.call", routertest.Always(routertest.Failed(intents.ExecutorFailed)))
	w.Want(w.Do(at("3.0", task.CallIntent("pay", `{"to":"eve"}`))), intents.ExecutorFailed)
	w.OK(task.Intent("skill.load", catalog.SkillLoad{Skill: "pay"}))
	w.Want(w.Do(at("4.0", task.CallIntent("other", `{}`))), intents.TaskScope)
	w.Want(task.Reply("These."), intents.OK)
	w.Want(task.Complete(), intents.OK)
	f.caughtUp()
	want := []string{
		`tool_call pay_bill (pay) 1.1.0 null {"to":"ben"}`, `tool_response pay_bill (pay) 1.1.0 {"output":"paid"} `,
		`tool_call search 1.2.0 null {"mode":"SEARCH","query":"boat"}`, `tool_response search 1.2.0 {"hits":[],"by":"words"} `,
		`tool_call pay (pay) 1.3.0 null {"to":"eve"}`, `tool_response pay (pay) 1.3.0 EXECUTOR_FAILED: as the test wants it `,
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

// TestAskRows: an ask is a call of the asking agent, and the asked agent's reply is its answer. The
// asked agent's own calls make no rows.
func TestAskRows(t *testing.T) {
	live := documents(t)
	w, f := woken(t, live)
	w.Pin("shop.list", catalog.Pure)
	w.PushAgents(1, map[string]string{
		"desk":   "name: desk\ndescription: Knows whom to ask.\nsub_agents: [shop, points]\n",
		"points": "name: points\ndescription: Counts.\nstructured_output: true\nproperties: {points: {type: integer}}\n",
		"shop":   "name: shop\ndescription: Sells.\ntools: [{server: shop, name: list}]\n",
	})
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`["a spoon"]`)})))
	p := w.BegunAgent("p", "desk")
	task := p.Started(1)
	asked := task.MustAsk("shop", "1.0")
	list := asked.CallIntent("shop.list", `{}`)
	list.Ctx.Call = "1.0"
	w.OK(list)
	w.Want(asked.Reply("A spoon."), intents.OK)
	refused := task.MustAsk("shop", "2.0")
	w.Want(refused.Finish("failed", "", "The shop is closed."), intents.OK)
	w.Want(task.MustAsk("points", "3.0").Reply(`{"points":7}`), intents.OK)
	byName, shop := task.AskIntent("shop", "4.0", nil)
	byName.Ctx.Tool = "ask_shop"
	w.OK(byName)
	w.Want(shop.Reply("A fork."), intents.OK)
	w.Want(task.Reply("These."), intents.OK)
	w.Want(p.Complete(), intents.OK)
	f.caughtUp()
	f.stop()
	want := []string{
		`tool_call ask_agent 1.1.0 null {"agent_name":"shop","input_text":"Which, in 1.0?"}`, "tool_response ask_agent 1.1.0 A spoon. ",
		`tool_call ask_agent 1.2.0 null {"agent_name":"shop","input_text":"Which, in 2.0?"}`, "tool_response ask_agent 1.2.0 failed: The shop is closed. ",
		`tool_call ask_agent 1.3.0 null {"agent_name":"points","input_text":"Which, in 3.0?"}`, `tool_response ask_agent 1.3.0 {"points":7} `, // of a structured agent: JSON
		`tool_call ask_shop 1.4.0 null {"input_text":"Which, in 4.0?"}`, "tool_response ask_shop 1.4.0 A fork. ",
	}
	if d := cmp.Diff(want, toolRows(t, live)); d != "" {
		t.Error(d)
	}
}
