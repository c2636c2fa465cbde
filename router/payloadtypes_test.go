package router_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// typed is an agent that declares a type of payload.
const typed = `
name: orders
description: Knows orders.
enrichers:
  - {domain_type: orders, enricher_id: v1, version: 1.2.0, schema: {type: array, maxItems: 10.0}}
`

// lastTicket of a skill.call.
func lastTicket(t *testing.T, w *routertest.World) intents.Ticket {
	t.Helper()
	calls := w.Bus.Calls("skill.call")
	if len(calls) == 0 {
		t.Fatal("no call")
	}
	return calls[len(calls)-1].Ticket
}

// TestTicketHasPayloadTypes: the ticket of a call has the types that the agents of the tenant
// declare, its own over those of system, from the push on, and after a restart, too.
func TestTicketHasPayloadTypes(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("crm.list", catalog.Pure)
	task := w.Begun("p1", "crm.list").Started(1)
	types := func(args string) (versions []string) {
		w.Want(task.Call("crm.list", args), intents.OK)
		for _, x := range lastTicket(t, w).Types {
			versions = append(versions, x.DomainType+" "+x.EnricherID+" "+x.Version+" "+string(x.Schema))
		}
		return versions
	}
	if got := types(`{}`); got != nil {
		t.Errorf("before any agent: %v", got)
	}
	w.Want(w.Admin("registry.push", w.RegistryOf("", 1, map[string]string{"orders": typed})), intents.OK)
	if d := cmp.Diff([]string{`orders v1 1.2.0 {"maxItems":10,"type":"array"}`}, types(`{"n":1}`)); d != "" {
		t.Error(d)
	}
	w.PushAgents(1, map[string]string{"orders": strings.Replace(typed, "1.2.0", "2.0.0", 1)})
	w = w.Restart()
	task = w.Begun("p2", "crm.list").Started(1)
	if d := cmp.Diff([]string{`orders v1 2.0.0 {"maxItems":10,"type":"array"}`}, types(`{"n":2}`)); d != "" {
		t.Error(d)
	}
}

// TestTicketOfKeptAnswers: an executor that caches answers gets their lifetime, the approval they
// date from, and the number of erasures. Only pure skills have such an approval.
func TestTicketOfKeptAnswers(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	approve := catalog.SkillApprove{Tenant: "default", Skill: "crm.list", Digest: intents.Digest([]byte("v1")), Effect: catalog.Once, CacheSeconds: 60}
	w.Want(w.Admin("skill.approve", approve), intents.SchemaInvalid)
	approve.Effect, approve.CacheSeconds, approve.Shared = catalog.Pure, 0, true
	w.Want(w.Admin("skill.approve", approve), intents.SchemaInvalid)
	approve.CacheSeconds = 60
	at := w.Want(w.Admin("skill.approve", approve), intents.OK).Position
	p := w.Begun("p1", "crm.list")
	task := p.Started(1)
	first := w.Want(task.Call("crm.list", `{}`), intents.OK)
	ticket := lastTicket(t, w)
	if d := cmp.Diff([]intents.Pin{{Skill: "crm.list", Name: "list", Digest: approve.Digest, Effect: "pure", CacheSeconds: 60, Shared: true, Since: *at}}, ticket.Pins); d != "" || ticket.Erasures != 0 {
		t.Errorf("%d erasures, pins %s", ticket.Erasures, d)
	}
	p.Fail()
	w.Want(w.Erase(first, catalog.ErasesResult), intents.OK)
	w = w.Restart()
	w.Want(w.Begun("p2", "crm.list").Started(1).Call("crm.list", `{}`), intents.OK)
	if got := lastTicket(t, w); got.Erasures != 1 || got.Pins[0].Since != *at {
		t.Errorf("after an erasure: %+v", got)
	}
}

// TestEventsAreCounted: events that executors of this system report are counted by event.
func TestEventsAreCounted(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("crm.list", catalog.Pure)
	task := w.Begun("p1", "crm.list").Started(1)
	failed := routertest.Failed(intents.ExecutorFailed)
	failed.Events = []intents.ReportedEvent{routertest.Event("envelope.version_mismatch", `{"skill_id":"crm.list"}`), routertest.Event("made.up", `{}`)}
	w.Bus.On("skill.call", routertest.Always(failed))
	task.Call("crm.list", `{"n":1}`)
	task.Call("crm.list", `{"n":2}`)
	counts := w.Router.Counts()
	if d := cmp.Diff(map[string]int64{"envelope.version_mismatch": 2}, counts.Events); d != "" || counts.Versions != 2 || counts.Principals != 0 {
		t.Error(d, counts.Versions, counts.Principals)
	}
	failed.Events = []intents.ReportedEvent{routertest.Event("skill.principal_mismatch", `{"skill_id":"crm.list"}`)}
	w.Bus.On("skill.call", routertest.Always(failed))
	task.Call("crm.list", `{"n":3}`)
	if counts = w.Router.Counts(); counts.Principals != 1 {
		t.Error(counts.Principals)
	}
}
