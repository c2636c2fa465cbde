package node

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"aob.dev/writ/cell"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TestStandby: a router that does not decide passes intents and batches on, judges dry runs, and takes
// over once the other one has stopped, with all of its records.
func TestStandby(t *testing.T) {
	c := newCell(t, "a", "b")
	c.begin(c.config("a", "router"))
	first, stop, err := Start(context.WithoutCancel(t.Context()), c.config("a", "router"))
	must(t, err)
	send := func(to *Node, id string) {
		t.Helper()
		var a intents.Answer
		raw := c.sign("operator", intents.RoleOperator, "admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: id}})
		if status := c.call("", http.MethodPost, to.url()+"/v1/intents", raw, &a); status != http.StatusOK || a.Code != intents.OK {
			t.Errorf("%s: HTTP %d, %+v", id, status, a)
		}
	}
	send(first, "one") // so that it is the first
	second := c.process(c.config("b", "router"))
	if !first.term.Held() || second.term.Held() {
		t.Fatal("not the first one decides")
	}
	send(second, "two")
	raw := c.sign("operator", intents.RoleOperator, "admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "dry"}})
	if status := c.call("", http.MethodPost, second.url()+"/v1/intents?dry_run=true", raw, nil); status != http.StatusOK {
		t.Errorf("a dry run: HTTP %d", status)
	}
	bad := append([]byte{}, raw...)
	bad[len(bad)/2] ^= 1
	if status := c.call("", http.MethodPost, second.url()+"/v1/intents", bad, nil); status < 400 || status >= 500 {
		t.Errorf("a forged intent: HTTP %d", status)
	}
	if status := c.call("", http.MethodPost, second.url()+"/v1/batches", []byte(`{}`), nil); status < 400 || status >= 500 {
		t.Errorf("no batch: HTTP %d", status)
	}
	if status := c.call("", http.MethodGet, second.url()+"/readyz", nil, nil); status != http.StatusOK {
		t.Errorf("readyz: HTTP %d", status)
	}
	must(t, stop())
	send(second, "three")
	if !second.term.Held() {
		t.Error("it has decided, and does not")
	}
	for _, id := range []string{"one", "two", "three"} {
		if !slices.Contains(second.directory.Tenants(), id) {
			t.Errorf("no tenant %s", id)
		}
	}
	s, err := cell.StatusOf(t.Context(), c.config("b", "router").Cluster.Bus, c.config("b", "router").Cluster.Keys)
	must(t, err)
	if s.Router != "b" {
		t.Errorf("%+v", s)
	}
}
