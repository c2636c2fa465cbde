package crm

import (
	"slices"
	"testing"
	"time"
)

func TestTools(t *testing.T) {
	names := Tools()
	if len(names) < 50 || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Fatalf("%d tools: %q", len(names), names)
	}
	s := New(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	for _, x := range tools {
		if len(s.tables[x.table]) == 0 || ids[x.table] == "" {
			t.Errorf("%s gives rows of %q", x.name, x.table)
		}
	}
}

// TestCloseOldTickets: there are sixteen of them, each can be closed once, and a tool
// fails when it is told to.
func TestCloseOldTickets(t *testing.T) {
	s := New(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	of := func(name string) tool {
		return tools[slices.IndexFunc(tools, func(x tool) bool { return x.name == name })]
	}
	out, err := s.call(of("list_tickets"), map[string]any{"status": "open", "older_than_days": 10.0})
	if err != nil {
		t.Fatal(err)
	}
	rows := out.(map[string]any)["tickets"].([]row)
	if len(rows) != OldTickets {
		t.Fatalf("%d rows", len(rows))
	}
	s.FailAfter("close_ticket", 12)
	for i, r := range rows {
		if _, err := s.call(of("close_ticket"), map[string]any{"ticket": r["ticket"]}); (err == nil) != (i < 12) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	if n := s.Calls("close_ticket"); n != OldTickets || s.Count("tickets", "status", "closed") != 12+2 {
		t.Errorf("%d calls, %d closed", n, s.Count("tickets", "status", "closed"))
	}
	s.FailAfter("close_ticket", 99)
	if _, err := s.call(of("close_ticket"), map[string]any{"ticket": "T-1"}); err == nil {
		t.Error("a closed ticket was closed")
	}
}
