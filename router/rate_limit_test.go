package router_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// A signer has a rate in each tenant, and a tenant one of its own. Above it, the refusal says when
// to try again and leaves no record.
func TestRates(t *testing.T) {
	for name, c := range map[string]struct {
		rates router.Rates
		other func(w *routertest.World, o routertest.Intent) routertest.Intent // has a rate of its own
	}{
		"signer": {router.Rates{Signer: 1}, func(w *routertest.World, _ routertest.Intent) routertest.Intent {
			return routertest.Intent{By: w.Manager, Type: "soul.get", Args: catalog.SoulGet{}}
		}},
		"signer in another tenant": {router.Rates{Signer: 1}, func(_ *routertest.World, o routertest.Intent) routertest.Intent {
			o.Tenant = "acme"
			return o
		}},
		"tenant": {router.Rates{Tenant: 1}, func(_ *routertest.World, o routertest.Intent) routertest.Intent {
			o.Tenant = "acme"
			return o
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{Rates: c.rates})
			w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
			for range 10 { // ten seconds' worth
				w.OK(find(w))
			}
			before := w.Journal.Next()
			a := w.Want(w.Do(find(w)), intents.RateLimited)
			if a.RetryAfter != 1 || a.Position != nil || w.Journal.Next() != before || len(w.Bus.Calls("skill.find")) != 10 {
				t.Errorf("%+v", a)
			}
			w.OK(c.other(w, find(w)))
			w.Clock.Move(time.Second)
			w.OK(find(w))
			w.Want(w.Do(find(w)), intents.RateLimited)
		})
	}
}

// An intent consumes only the rate of the key that signed it, and a submission that is decided
// again counts once.
func TestRateCountsSigners(t *testing.T) {
	w := routertest.New(t, routertest.Options{Rates: router.Rates{Signer: 1}})
	forged := w.Sign(find(w))
	forged[len(forged)/2] ^= 1
	for range 20 {
		if a := w.Send(forged); a.Code == intents.OK || a.Code == intents.RateLimited {
			t.Fatal(a.Code)
		}
	}
	for range 10 {
		w.OK(find(w))
	}
	w.Want(w.Do(find(w)), intents.RateLimited)

	w, j := withHooksAnd(t, routertest.Options{Rates: router.Rates{Signer: 1}})
	for i := range 10 {
		j.beforeCommit = func() { w.Data("x.n", fmt.Sprint(i)) }
		w.OK(find(w))
	}
	w.Want(w.Do(find(w)), intents.RateLimited)
}

// counters reads the counter records of a world.
func counters(w *routertest.World) []state.Counters {
	w.Helper()
	var out []state.Counters
	for _, r := range w.Records() {
		var c state.Control
		if r.Kind != storage.KindControl {
			continue
		}
		w.Must(json.Unmarshal(r.Parts[storage.PartControl], &c))
		if c.Counters != nil {
			out = append(out, *c.Counters)
		}
	}
	return out
}

// A flood leaves one record a second, which names its signers; without one there is no record.
// Refusals with a record of their own are not in it; their repetitions are.
func TestCounterRecords(t *testing.T) {
	routertest.New(t, routertest.Options{}) // the policy engine is made outside the bubble
	synctest.Test(t, func(t *testing.T) {
		w := routertest.New(t, routertest.Options{Rates: router.Rates{Signer: 1}})
		stop := w.RunRouter()
		for range 10 {
			w.OK(find(w))
		}
		before := w.Journal.Next()
		for range 500 {
			w.Want(w.Do(find(w)), intents.RateLimited)
			w.Want(w.Send([]byte("{")), intents.SchemaInvalid)
		}
		denied := w.Sign(routertest.Intent{By: w.Manager, Type: "plan.claim", Args: catalog.PlanClaim{PlanID: routertest.PlanID("p9"), Epoch: 1, Driver: "d"}})
		for range 3 {
			w.Want(w.Send(denied), intents.TaskScope)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		got := counters(w)
		if len(got) != 1 || w.Journal.Next()-before != 2 {
			t.Fatalf("%d counter records, %d records", len(got), w.Journal.Next()-before)
		}
		want := map[intents.Code]int64{intents.RateLimited: 500, intents.SchemaInvalid: 500, intents.TaskScope: 2}
		if fmt.Sprint(got[0].Refused) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got[0].Refused, want)
		}
		if s := got[0].Signers; len(s) != 2 || s[0] != (state.SignerCount{KID: w.Planner.KID, Refused: 500}) || s[1] != (state.SignerCount{KID: w.Manager.KID, Refused: 2}) {
			t.Errorf("%v", s)
		}
		time.Sleep(time.Second / 2) // between two records: at the same instant either may be first
		for range 4 {
			w.Want(w.Do(find(w)), intents.RateLimited)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := len(counters(w)); n != 5 {
			t.Errorf("%d counter records after four more seconds of it", n)
		}
		w.Want(w.Do(find(w)), intents.RateLimited)
		n := len(counters(w))
		stop()
		if len(counters(w)) != n+1 {
			t.Error("what was counted last is lost by a stop")
		}
		if c := w.Router.Counts(); c.Refused[intents.RateLimited] != 505 || c.Refused[intents.TaskScope] != 3 {
			t.Errorf("%+v", c.Refused)
		}
		w.Restart() // applies them
	})
}

// What cannot be recorded is recorded later.
func TestCountersNotRecorded(t *testing.T) {
	routertest.New(t, routertest.Options{})
	synctest.Test(t, func(t *testing.T) {
		w := routertest.New(t, routertest.Options{})
		stop := w.RunRouter()
		defer stop()
		w.Want(w.Send([]byte("{")), intents.SchemaInvalid)
		inMemory(w).FailNext(errDisk, false)
		time.Sleep(1500 * time.Millisecond)
		w.Want(w.Send([]byte("{")), intents.SchemaInvalid)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := counters(w); len(got) != 1 || got[0].Refused[intents.SchemaInvalid] != 2 {
			t.Errorf("%+v", got)
		}
	})
}
