package executors_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/executortest"
)

// TestTurnsOfTenants: where one tenant's intents take all turns that they may, another tenant's are
// carried out. What had no turn before its deadline was not begun, and says so.
func TestTurnsOfTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		e := executortest.New(t, "skills", nil, answering(func(ctx context.Context, o *executors.Intent) (*executors.Result, error) {
			if o.Ticket.Actor.Tenant != "greedy" {
				return ok(ctx, o)
			}
			begun.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		of := func(tenant string) intents.Dispatch {
			in := executortest.Intent{Type: "skill.call", Args: map[string]any{"skill": "pay"}}
			in.Ticket.Pins, in.Ticket.Actor.Tenant = []intents.Pin{{Skill: "pay", Effect: "once"}}, tenant
			in.Ticket.BeginBy = e.Now().Add(intents.TicketLife)
			return e.Sign(t, e.Fill(in))
		}
		const sent = 200
		var all sync.WaitGroup
		codes := make(chan intents.Code, sent)
		for range sent {
			d := of("greedy")
			all.Go(func() { codes <- e.Send(t, d).Code })
		}
		synctest.Wait()
		if n := begun.Load(); n < 32 || n >= 64 {
			t.Errorf("%d intents of one tenant are carried out at once", n)
		}
		if r := e.Send(t, of("other")); r.Status != intents.Done {
			t.Errorf("another tenant's intent: %+v", r)
		}
		all.Wait()
		close(codes)
		count := map[intents.Code]int32{}
		for c := range codes {
			count[c]++
		}
		if n := begun.Load(); count[intents.Indeterminate] != n || count[intents.ExecutorTimeout] != sent-n {
			t.Errorf("%d were begun; %v", n, count)
		}
	})
}

// TestTurnsOfKeysAndUsers: a key that acts for many users, and a user of it that asks for much, take no
// turns of another key and of another user.
func TestTurnsOfKeysAndUsers(t *testing.T) {
	for name, greedy := range map[string]func(i int, actor *intents.Ticket){
		"a key of many users": func(i int, ticket *intents.Ticket) { ticket.Actor.UserID = fmt.Sprint("user", i) },
		"a user of the key":   func(_ int, ticket *intents.Ticket) { ticket.Key, ticket.Actor.UserID = "modest", "ben" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := executortest.New(t, "skills", nil, answering(func(ctx context.Context, o *executors.Intent) (*executors.Result, error) {
					if o.Ticket.Actor.UserID != "ana" {
						<-ctx.Done()
					}
					return ok(ctx, o)
				}))
				of := func(change func(*intents.Ticket)) intents.Dispatch {
					in := executortest.Intent{Type: "skill.call", Args: map[string]any{"skill": "pay"}}
					in.Ticket.Pins, in.Ticket.Key = []intents.Pin{{Skill: "pay", Effect: "once"}}, "greedy"
					change(&in.Ticket)
					return e.Sign(t, e.Fill(in))
				}
				var all sync.WaitGroup
				for i := range 200 {
					d := of(func(t *intents.Ticket) { t.Actor.UserID = "ben"; greedy(i, t) })
					all.Go(func() { e.Send(t, d) })
				}
				synctest.Wait()
				began := time.Now()
				if r := e.Send(t, of(func(t *intents.Ticket) { t.Actor.UserID, t.Key = "ana", "modest" })); r.Status != intents.Done || time.Since(began) > 0 {
					t.Errorf("another's intent: %+v", r)
				}
				all.Wait()
			})
		})
	}
}
