package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
)

// hold a call of a skill, so that its plan stays open.
func (c *testCell) hold(key, gateway, skill, message string) (plan string) {
	c.Helper()
	for _, args := range []catalog.AdminPut{
		{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"user", "approver"}}},
		{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: json.RawMessage(`{"skills":["` + skill + `"]}`)}},
	} {
		var a intents.Answer
		if c.call("", http.MethodPost, gateway+"/v1/intents", c.sign("operator", intents.RoleOperator, "admin.put", args), &a); a.Code != intents.OK {
			c.Fatalf("%+v", a)
		}
	}
	var held struct {
		Status string `json:"status"`
		PlanID string `json:"plan_id"`
	}
	if status := c.call(key, http.MethodPost, gateway+"/agent/run", map[string]string{"message": message}, &held); held.Status != "held" {
		c.Fatalf("HTTP %d %+v", status, held)
	}
	return held.PlanID
}

// snapshots: a process that starts with a snapshot knows what one knows that has read all
// records, and an erasure takes what is erased out of the next one. A plan with the word is
// open, until end is called.
func (c *testCell) snapshots(router, recorder *Node, word string, end func()) {
	c.Helper()
	has := func(n *Node) bool {
		raw, err := os.ReadFile(datadir.Snapshot(n.cfg.Dir))
		must(c.T, err)
		return bytes.Contains(raw, []byte(word))
	}
	for i := range 150 { // more records than a recorder may write again
		var a intents.Answer
		c.call("", http.MethodPost, router.url()+"/v1/intents", c.sign("operator", intents.RoleOperator, "admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: fmt.Sprint("tenant-", i)}}), &a)
		if a.Code != intents.OK {
			c.Fatalf("%+v", a)
		}
	}
	must(c.T, recorder.recorder.Reach(c.within(), router.journal.Next()))
	for _, n := range []*Node{router, recorder} {
		n.stored.Pace = atEach
		must(c.T, n.stored.Follow(c.Context(), n.journal.(*jetstream.Journal), n.keys.Now))
		if !has(n) {
			c.Errorf("the snapshot of the %s has no %q", n.cfg.Cluster.Roles, word)
		}
	}
	if last, _ := recorder.stored.Last(); last == nil || last.Next > router.journal.Next() {
		c.Errorf("the recorder's snapshot is %+v", last)
	}
	contents, err := recorder.stored.Contents()
	must(c.T, err)
	if at, err := recorder.recorder.Projected(c.Context()); err != nil || contents.Next() > at {
		c.Errorf("the recorder's snapshot ends at %d, the documents at %d: %v", contents.Next(), at, err)
	}
	c.opensWith(router, openedWith, nil)

	end()
	c.opensWith(router, openedWith, nil)
	// Erasures that come while a snapshot is made are not taken for seen.
	documented := router.stored.End
	router.stored.End = func(ctx context.Context) (int64, error) {
		c.eraseAll(router, word)                                                           //nolint:contextcheck // the test's
		must(c.T, clock.Every(c.within(), 10*time.Millisecond, router.stored.Erased.Load)) //nolint:contextcheck // likewise
		return documented(ctx)
	}
	must(c.T, router.stored.Follow(c.Context(), router.journal.(*jetstream.Journal), router.keys.Now))
	router.stored.End = documented
	if !router.stored.Erased.Load() {
		c.Error("erasures behind the end of a snapshot are forgotten")
	}
	c.opensWith(router, openedWith, nil) // with the one from before
	router.stored.Pace.Every = 1 << 40   // the erasures alone make it due
	must(c.T, router.stored.Follow(c.Context(), router.journal.(*jetstream.Journal), router.keys.Now))
	if has(router) || router.stored.Erased.Load() {
		c.Errorf("the snapshot has %q after all intents with it were erased", word)
	}
	c.opensWith(router, openedWith, nil)
	c.opensWith(router, leftOut, func(raw []byte) []byte { return append([]byte("x"), raw...) })
	of, err := os.ReadFile(datadir.Snapshot(recorder.cfg.Dir))
	must(c.T, err)
	c.opensWith(router, leftOut, func([]byte) []byte { return of }) // no router has signed it
}

// eraseAll erases all intents that contain a word.
func (c *testCell) eraseAll(router *Node, word string) {
	c.Helper()
	erased := 0
	for r, err := range router.journal.Scan(c.Context(), 0) {
		must(c.T, err)
		if r.Kind != storage.KindIntent || !bytes.Contains(r.Parts[storage.PartEnvelope], []byte(word)) {
			continue
		}
		o, err := state.ReadIntent(r)
		must(c.T, err)
		var a intents.Answer
		c.call("", http.MethodPost, router.url()+"/v1/intents", c.sign("operator", intents.RoleOperator, "record.erase", catalog.RecordErase{
			Tenant: o.Tenant, IntentID: o.Decision.IntentID, Position: r.Position, Parts: []string{catalog.ErasesEnvelope}, Reason: "asked for",
		}), &a)
		if a.Code != intents.OK {
			c.Errorf("%s: %+v", o.Type, a)
		}
		erased++
	}
	if erased < 4 {
		c.Errorf("%d intents were erased", erased)
	}
}

// opensWith opens another process with a router's snapshot, and compares what both know.
func (c *testCell) opensWith(router *Node, says string, change func([]byte) []byte) {
	c.Helper()
	cfg := c.config("a", "router")
	raw, err := os.ReadFile(datadir.Snapshot(router.cfg.Dir))
	must(c.T, err)
	if change != nil {
		raw = change(raw)
	}
	must(c.T, os.WriteFile(datadir.Snapshot(cfg.Dir), raw, 0o600))
	log := newMessages()
	cfg.Log = log.logger()
	n, err := Open(c.Context(), cfg)
	must(c.T, err)
	defer func() { must(c.T, n.Close()) }()
	if log.count(says) != 1 || log.count(openedWith)+log.count(leftOut) != 1 {
		c.Errorf("want %q, it has said %q", says, log.messages)
	}
	must(c.T, n.journal.(*jetstream.Journal).Fresh(c.within()))
	at, want, err := router.directory.Digest()
	must(c.T, err)
	if next, is, err := n.directory.Digest(); err != nil || next != at || is != want {
		c.Errorf("opened: state %s at %d, want %s at %d: %v", is, next, want, at, err)
	}
}
