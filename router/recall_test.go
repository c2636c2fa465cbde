package router_test

import (
	"fmt"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestDreams: after every twenty turns of a session a dream is due. A plan that dreams is not a
// turn: it waits for none, and none waits for it.
func TestDreams(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	n := 0
	turns := func(times int) (last *routertest.Plan) {
		for range times {
			n++
			last = w.NewPlan(fmt.Sprintf("p%d", n))
			w.Want(w.Do(besides(last)), intents.OK)
			w.Want(last.Cancel(w.Gateway), intents.OK)
		}
		return last
	}
	dream := func(id string) *routertest.Plan {
		p := w.NewPlan(id)
		o := p.OpenAgentIntent("dreaming-agent")
		o.Ctx.SessionID = routertest.Session
		w.Want(w.Do(o), intents.OK)
		return p
	}
	turns(19)
	if due := w.Dir.Undreamt(); len(due) != 0 {
		t.Fatalf("%+v", due)
	}
	last := turns(1)
	w = w.Reopen()
	if due := w.Dir.Undreamt(); len(due) != 1 || due[0].Plan.PlanID != last.ID || due[0].Plan.SessionID != routertest.Session || len(due[0].Roles) == 0 {
		t.Fatalf("%+v", due)
	}
	open := w.NewPlan("open")
	w.Want(w.Do(besides(open)), intents.OK)
	p := dream("d1")
	if due := w.Dir.Undreamt(); len(due) != 0 {
		t.Errorf("%+v", due)
	}
	w.Want(open.Cancel(w.Gateway), intents.OK)
	turns(18)
	w.Want(p.Cancel(w.Gateway), intents.OK)
	w.Want(w.Do(besides(w.NewPlan("another"))), intents.OK)
	w.Want(w.Do(besides(w.NewPlan("busy"))), intents.SessionBusy) // the end of a dream frees nothing
	if due := w.Dir.Undreamt(); len(due) != 0 {
		t.Errorf("%+v", due)
	}
}

// TestSearchTool: an agent with the tool search may search, the task of a planner's step may not.
func TestSearchTool(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("pay", catalog.Once)
	w.Bus.On("memory.query", routertest.Always(routertest.Done(catalog.MemoryQueryResult{Hits: []catalog.MemoryHit{}, By: catalog.ByWords})))
	search := catalog.MemoryQuery{Mode: catalog.Search, Text: "boat"}
	step := w.Begun("p1", "pay").Started(1)
	if a := w.Want(w.Do(step.Intent("memory.query", search)), intents.TaskScope); a.Pointer != "/intent/args/mode" {
		t.Errorf("%+v", a)
	}
	w.OK(step.Intent("memory.query", catalog.MemoryQuery{Text: "boat"}))
	w.PushAgents(1, map[string]string{"plain": "name: plain\ndescription: Talks.\n"})
	w.Want(w.Do(w.BegunAgent("p2", "plain").Started(1).Intent("memory.query", search)), intents.TaskScope)
	w.OK(w.BegunAgent("p3", "general").Started(1).Intent("memory.query", search))
}
