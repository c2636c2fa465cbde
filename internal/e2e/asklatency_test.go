package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
)

// TestAskLatency: what an ask takes beside model and tool is less than the slowest tool, and
// asks of one reply take together as long as the slowest of them, not as long as all. All of
// it are times of the record.
func TestAskLatency(t *testing.T) {
	const fast, slow, turns = 200 * time.Millisecond, 500 * time.Millisecond, 5
	takes := func(d time.Duration) func(json.RawMessage) (any, error) {
		return func(json.RawMessage) (any, error) {
			time.Sleep(d) // that is how long the tool takes
			return []int{1}, nil
		}
	}
	server := serveSkills(t, skill{name: "list_tickets", about: "Tickets.", do: takes(fast)}, skill{name: "list_orders", about: "Orders.", do: takes(slow)})
	dir := t.TempDir()
	for name, text := range map[string]string{
		"front": "sub_agents: [tickets, orders]\n", "tickets": "tools: [{server: crm, name: list_tickets}]\n", "orders": "tools: [{server: crm, name: list_orders}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte("name: "+name+"\ndescription: Knows things.\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	looks := func(name string) func(context.Context, model.Request) *model.Response {
		return func(_ context.Context, req model.Request) *model.Response {
			if len(exchanges(req)) == 0 {
				return replying(req, call("list_"+name, "{}"))
			}
			return &model.Response{Text: "One of " + name + "."}
		}
	}
	m := &cast{parts: map[string]func(context.Context, model.Request) *model.Response{"front": desk("tickets", "orders"), "tickets": looks("tickets"), "orders": looks("orders")}}
	s := start(t, setup{Model: m, Skills: []string{"name=crm -- " + server.url}, Agents: dir})
	for i := range turns {
		got := s.askAgent(s.as("local"), "front", fmt.Sprintf("How are things, %d?", i))
		asked, _ := children(t, got.Orders)
		if got.Response != "One of tickets. One of orders." || len(asked) != 2 {
			t.Fatalf("%+v", got)
		}
		tickets, orders := asked["tickets"], asked["orders"]
		for _, x := range []struct {
			child
			tool time.Duration
		}{{tickets, fast}, {orders, slow}} {
			if over := x.ended.Sub(x.began) - x.tool; over < 0 || over >= slow {
				t.Errorf("%s took %s beside its tool", x.agent, over)
			}
		}
		first, last := tickets.began, orders.ended
		if orders.began.Before(first) {
			first = orders.began
		}
		if tickets.ended.After(last) {
			last = tickets.ended
		}
		all, longest, sum := last.Sub(first), orders.ended.Sub(orders.began), orders.ended.Sub(orders.began)+tickets.ended.Sub(tickets.began)
		if all >= sum || all-longest >= fast {
			t.Errorf("both took %s, the longer one %s, their sum is %s", all, longest, sum)
		}
	}
}
