package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// tickets is how many parcels a loop sends: one call each, whose effect nobody can undo.
const tickets = 16

// dispatcher sends them all in one reply. Where it finds calls that it did not write, a task
// was killed: then it sends them all again, in another order, grouping and wording.
type dispatcher struct{ *mind }

func (m dispatcher) Respond(ctx context.Context, req model.Request, on func(model.Event)) (*model.Response, error) {
	if req.Agent != agents.Executor {
		return m.mind.Respond(ctx, req, on)
	}
	m.mu.Lock()
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	var replies int
	var goesOn bool
	for _, msg := range req.Messages {
		if len(msg.Calls) > 0 && strings.HasPrefix(msg.Calls[0].ID, "mine_") {
			replies++
		} else if len(msg.Calls) > 0 {
			goesOn = true
		}
	}
	var calls []model.Call
	send := func(format string, n int) {
		calls = append(calls, model.Call{ID: fmt.Sprintf("mine_%d_%d", replies, len(calls)), Name: "parcel_send", Arguments: fmt.Sprintf(format, n)})
	}
	switch {
	case !goesOn && replies == 0:
		for n := range tickets {
			send(`{"parcel":%d}`, n)
		}
	case goesOn && replies < 4:
		for n := range tickets / 4 {
			send("{ \"parcel\" : %d }", tickets-1-replies*tickets/4-n)
		}
	default:
		calls = []model.Call{{ID: "end", Name: "write_memory", Arguments: `{"data":{"total":16}}`}}
	}
	return &model.Response{Calls: calls, Model: m.Name()}, nil
}

// TestAllTickets: a loop of sixteen calls has sixteen effects, counted at the server, also where it
// is killed while the ninth is on its way, after the server took it. No other call is made until an
// operator has reported its effect. Completed calls are not repeated, whatever the next model
// writes, and the plan is not replanned.
func TestAllTickets(t *testing.T) {
	t.Parallel()
	for name, killAt := range map[string]int64{"undisturbed": 0, "killed": 9} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			reached, end := make(chan struct{}), make(chan struct{})
			d := serveDepot(t, nil)
			t.Cleanup(func() { close(end) }) // before the server closes
			d.watch = func(string) {
				if sent.Add(1) == killAt {
					close(reached)
					<-end
				}
			}
			m := dispatcher{&mind{plan: func(planning) model.Call {
				return steps(step(1, "send all", "parcel_send", 0, "{total: integer}"))
			}}}
			x := boot(t, m, d.skills)
			x.holdNothing()
			id := x.ask(accepted)
			if killAt > 0 {
				<-reached
				x.kill()
				x.start()
				call := x.unknown(id)
				if n := sent.Load(); n != killAt {
					t.Errorf("%d calls before it is known what the last one did", n)
				}
				x.resolve(call, "done")
			}
			v := x.finished(id)
			if v.Status != catalog.PlanComplete || v.Revision != 1 || v.ReplanCount != 0 || !strings.Contains(v.Response, "16") {
				t.Errorf("plan %+v", v)
			}
			ids := d.ids("parcel_send")
			if slices.Sort(ids); len(ids) != tickets || len(slices.Compact(ids)) != tickets {
				t.Errorf("%d effects", len(ids))
			}
			if killAt == 0 {
				return
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			last, said := m.requests[len(m.requests)-1], map[string]int{}
			for _, r := range slices.Backward(m.requests) {
				if last = r; r.Agent == agents.Executor {
					break
				}
			}
			for _, msg := range last.Messages {
				for _, word := range []string{`"already_done":true`, `"status":"done"`, `"status":"unknown"`, "CONFLICT_IDEMPOTENCY"} {
					if msg.Role == model.RoleTool && strings.Contains(msg.Text, word) {
						said[word]++
					}
				}
			}
			// The model's own calls are answered from the record: eight that were done, four that had
			// waited, and the one that an operator knew of, which the transcript tells, too.
			if said[`"already_done":true`] != 8+4 || said[`"status":"done"`] != 2 || len(said) != 2 {
				t.Errorf("the model was told %v", said)
			}
		})
	}
}
