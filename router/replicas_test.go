package router_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// peers are other routers as a test needs them.
type peers struct {
	lost  atomic.Bool
	fresh func()
}

func (p *peers) Lost(int64) bool { return p.lost.Load() }

func (p *peers) Fresh(context.Context) error {
	if p.fresh != nil {
		p.fresh()
	}
	return nil
}

// An intent that another router executes is left to it as long as it lives; when it is gone, the
// intent ends as after a crash, at any time.
func TestRecoverAfterOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		others := new(peers)
		w := routertest.New(t, routertest.Options{Peers: others})
		task := started(w, catalog.Idempotent)
		call := task.CallIntent("feed", `{}`)
		w, open := left(w, call)
		w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})))
		stop := recovering(w)
		defer stop()
		time.Sleep(time.Hour)
		w.Want(w.Do(call), intents.InFlight)
		others.lost.Store(true)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if out := outcome(w, *open.Position); out.Status != intents.Done || out.Attempt != 2 || len(w.Bus.Calls("skill.call")) != 2 {
			t.Errorf("%+v, %d dispatches", out, len(w.Bus.Calls("skill.call")))
		}
	})
}

// Before refusing an intent for an unknown key, the router checks whether another router has
// committed it. Uncommitted data changes nothing.
func TestKeyOfAnotherRouter(t *testing.T) {
	others := new(peers)
	w := routertest.New(t, routertest.Options{Peers: others})
	fresh := w.NewKey(intents.RoleManager)
	soul := routertest.Intent{By: fresh, Type: "soul.get", Args: catalog.SoulGet{}}
	w.Begun("p1", "a")
	w.Want(w.Do(soul), intents.KeyUnknown)
	put := false
	others.fresh = func() {
		if put {
			return
		}
		put = true
		w.Want(w.Keys(func(s *intents.KeySet) { s.Keys = append(s.Keys, fresh.VerificationKey().ToJWK()) }), intents.OK)
	}
	w.Want(w.Do(soul), intents.OK)
}

// An intent is not refused for what another router has changed since either.
func TestDirectoryOfAnotherRouter(t *testing.T) {
	others := new(peers)
	w := routertest.New(t, routertest.Options{Peers: others})
	put := func(tenant string) routertest.Intent {
		return routertest.Intent{By: w.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: tenant, Data: &catalog.Data{Key: "approval", Value: json.RawMessage(`{"once":false}`)}}}
	}
	w.Want(w.Do(put("later")), intents.MalformedArgs)
	made := false
	others.fresh = func() {
		if !made {
			made = true
			w.Want(w.Do(routertest.Intent{By: w.Operator, Type: "admin.put", Args: catalog.AdminPut{New: &catalog.Tenant{ID: "later"}}}), intents.OK)
		}
	}
	w.Want(w.Do(put("later")), intents.OK)
}

// telling reports each stage of an intent.
type telling struct{ stage func(string) }

func (m *telling) Stage(stage string, _ time.Duration) { m.stage(stage) }
func (*telling) Decided(string, string, []string)      {}

// Nor for what is observed between the decision and the check.
func TestObservedMeanwhile(t *testing.T) {
	m := &telling{stage: func(string) {}}
	w := routertest.New(t, routertest.Options{Peers: new(peers), Meter: m})
	made := false
	m.stage = func(stage string) {
		if !made && stage == "idempotency" {
			made = true
			w.Want(w.Do(routertest.Intent{By: w.Operator, Type: "admin.put", Args: catalog.AdminPut{New: &catalog.Tenant{ID: "later"}}}), intents.OK)
		}
	}
	w.Want(w.Do(routertest.Intent{By: w.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "later", Data: &catalog.Data{Key: "approval", Value: json.RawMessage(`{"once":false}`)}}}), intents.OK)
	if !made {
		t.Error("there was no such stage")
	}
}
