package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

const (
	moved    = "acme" // the tenant
	movedKey = "writ_0123456789abcdefghijklmnopqrstuvwxyz"
	deskFile = "name: desk\ndescription: Answers questions\ninstructions: Answer.\n"
)

// town is a cell that answers questions.
type town struct {
	*cell
	core    *Node // routes and records
	gateway string
	model   model.Model
}

// thinking answers once somebody lets it.
type thinking struct {
	offline.Model
	asked, may chan struct{}
}

func (m thinking) Respond(ctx context.Context, r model.Request, on func(model.Event)) (*model.Response, error) {
	select {
	case m.asked <- struct{}{}:
	case <-m.may:
	case <-ctx.Done():
	}
	select {
	case <-m.may:
	case <-ctx.Done():
	}
	return m.Model.Respond(ctx, r, on)
}

// newTown begins a cell whose log has so many records more than it needs.
func newTown(t *testing.T, more int, m model.Model) town {
	t.Helper()
	c := newCell(t, "a", "m")
	router := c.config("a", "router", "recorder")
	c.begin(c.config("a", "router"))
	x := town{cell: c, core: c.process(router), model: m}
	at := []string{x.core.url()}
	edge := c.config("a", "gateway", "manager", "planner", "task", "executor:artifacts", "executor:files", "executor:memory", "executor:plans", "executor:sessions", "executor:skills")
	edge.Model = x.model
	edge.Cluster.Routers, edge.Cluster.Recorders = at, at
	x.gateway = c.process(edge).url()
	for i := range more {
		x.put(catalog.AdminPut{New: &catalog.Tenant{ID: fmt.Sprint("t", i)}})
	}
	return x
}

// do is an order of the operator.
func (x town) do(typ string, args any) (a intents.Answer) {
	x.Helper()
	x.call("", http.MethodPost, x.gateway+"/v1/intents", x.seal("operator", intents.RoleOperator, typ, args), &a)
	return a
}

func (x town) put(a catalog.AdminPut) {
	x.Helper()
	if a.New == nil {
		a.Tenant = moved
	}
	if a := x.do("admin.put", a); a.Code != intents.OK {
		x.Fatalf("%s %s: %s", a.Code, a.Pointer, a.Reason)
	}
}

// settle makes the tenant with all that moves.
func (x town) settle() {
	x.Helper()
	x.put(catalog.AdminPut{New: &catalog.Tenant{ID: moved}})
	x.put(catalog.AdminPut{Role: &catalog.RoleData{Role: "clerk", Capabilities: []string{"plans:read"}}})
	x.put(catalog.AdminPut{User: &catalog.User{UserID: "ana", Roles: []string{"user", "clerk", "approver"}}})
	x.put(catalog.AdminPut{User: &catalog.User{UserID: "ben", Roles: []string{}, Disabled: true}})
	old := catalog.APIKey{ID: "desk", Hash: intents.Digest([]byte("old")), UserID: "ana", MaxRoles: []string{"user"}}
	x.put(catalog.AdminPut{APIKey: &old})
	old.Revoked = true
	x.put(catalog.AdminPut{APIKey: &old})
	x.put(catalog.AdminPut{APIKey: &catalog.APIKey{ID: "desk", Hash: intents.Digest([]byte(movedKey)), UserID: "ana", MaxRoles: []string{"user"}}})
	x.put(catalog.AdminPut{Data: &catalog.Data{Key: "x.shelf", Value: json.RawMessage(`{"n":1}`)}})
	pin := catalog.SkillApprove{Tenant: moved, Skill: "crm.feed", Digest: intents.Digest(nil), Effect: catalog.Pure, InputSchema: json.RawMessage(`{"type":"object"}`), CacheSeconds: 9}
	if a := x.do("skill.approve", pin); a.Code != intents.OK {
		x.Fatalf("%s %s: %s", a.Code, a.Pointer, a.Reason)
	}
	r, err := agents.Read(fstest.MapFS{"agents/desk.yaml": {Data: []byte(deskFile)}}, func(string) string { return "" })
	must(x.T, err)
	bundle, err := r.Pack()
	must(x.T, err)
	if a := x.do("registry.push", catalog.RegistryPush{Tenant: moved, Revision: 1, Digest: r.Digest(), Bundle: bundle}); a.Code != intents.OK {
		x.Fatalf("%s %s: %s", a.Code, a.Pointer, a.Reason)
	}
}

// says what comes of a message in the user's session.
func (x town) says(message string) (status int, text string) {
	x.Helper()
	var turn map[string]any
	status = x.call(movedKey, http.MethodPost, x.gateway+"/agent/run", map[string]string{"message": message, "session_id": "s1"}, &turn)
	return status, fmt.Sprint(turn)
}

// turns of the user's session.
func (x town) turns() int {
	x.Helper()
	doc, err := x.core.documents.Get(x.Context(), moved, storage.IndexSessions, "ana/s1")
	must(x.T, err)
	var s struct{ Messages []json.RawMessage }
	must(x.T, json.Unmarshal(doc.Body, &s))
	return len(s.Messages)
}

// moving from one to the other. tell hears each step.
func (x town) moving(to town, tell func(string)) Moving {
	at := func(x town) CellAt { return CellAt{x.config("m", "router"), x.dir} }
	return Moving{Tenant: moved, From: at(x), To: at(to), Wait: time.Minute, Tell: func(format string, args ...any) { tell(fmt.Sprintf(format, args...)) }}
}

// rows of the tenant, but for what each log says of its own.
func (x town) rows() state.TenantRows {
	r, _ := x.core.directory.Rows(moved)
	for i := range r.Skills {
		r.Skills[i].Since = 0
	}
	r.Place = state.Place{}
	if r.Registry != nil {
		r.Registry.Revision = 0
	}
	return r
}

// TestMoveTenant: a user asks in one cell, the tenant moves, and the user goes on in the other
// one with the same key in the same session. The first cell names the other one.
func TestMoveTenant(t *testing.T) {
	thinks := thinking{asked: make(chan struct{}), may: make(chan struct{})}
	old, next := newTown(t, 40, thinks), newTown(t, 0, offline.Model{})
	old.settle()
	answered := make(chan string)
	go func() {
		status, text := old.says("What can you do?")
		answered <- fmt.Sprintf("HTTP %d %s", status, text)
	}()
	<-thinks.asked
	m := old.moving(next, func(text string) { t.Log(text) })
	old.busy(m, next)
	close(thinks.may)
	if text := <-answered; !strings.HasPrefix(text, "HTTP 200 ") {
		t.Fatal(text)
	}
	var kept struct {
		Artifact string `json:"artifact"`
	}
	if status := old.call(movedKey, http.MethodPost, old.gateway+"/agent/artifacts", []byte(`"kept"`), &kept); status != http.StatusCreated {
		t.Fatalf("HTTP %d", status)
	}
	want, turns := old.rows(), old.turns()

	must(t, m.between(t.Context(), func(b *moving) error { return cut(t, b) }))
	out, err := MoveTenant(t.Context(), m) // once more
	must(t, err)
	if out.Orders != 0 || out.From != old.core.Origin() || out.To != next.core.Origin() {
		t.Errorf("once more: %+v", out)
	}
	if d := cmp.Diff(want, next.rows()); d != "" {
		t.Errorf("the directory (-old +new):\n%s", d)
	}
	next.handedOver(old)

	if status, text := old.says("And now?"); status != http.StatusUnprocessableEntity || !strings.Contains(text, next.core.Origin()) {
		t.Errorf("the old cell: HTTP %d %s", status, text)
	}
	if n := next.turns(); n != turns || n == 0 {
		t.Errorf("%d turns came, of %d", n, turns)
	}
	if status, text := next.says("What can you do?"); status != http.StatusOK {
		t.Fatalf("the new cell: HTTP %d %s", status, text)
	}
	if n := next.turns(); n <= turns {
		t.Errorf("%d turns, and there were %d: a later order is behind what came", n, turns)
	}
	if status := next.call(movedKey, http.MethodGet, next.gateway+"/agent/artifacts/"+strings.TrimPrefix(kept.Artifact, "cas://"), nil, nil); status != http.StatusOK {
		t.Errorf("the artifact %s: HTTP %d", kept.Artifact, status)
	}
	if err := StayTenant(t.Context(), m); err == nil || !strings.Contains(err.Error(), "has arrived") {
		t.Errorf("taken back: %v", err)
	}
	next.returns(old)
}

// busy: a tenant with an open plan leaves and does not arrive. The plan can go on, and the
// tenant may stay.
func (x town) busy(m Moving, next town) {
	x.Helper()
	m.Wait = time.Millisecond
	if out, err := MoveTenant(x.Context(), m); err == nil || !strings.Contains(err.Error(), "1 plans (plan_") || out.Came != 0 {
		x.Errorf("%+v, %v", out, err)
	}
	if _, there := next.core.directory.Rows(moved); there {
		x.Error("it came before it was done")
	}
	must(x.T, StayTenant(x.Context(), m))
	if err := StayTenant(x.Context(), m); err == nil {
		x.Error("it stays twice")
	}
}

// cut a move short before each of its steps, and then let it end. What is copied is copied
// again, so later cuts come after more of it.
func cut(t *testing.T, b *moving) error {
	t.Helper()
	tell, cuts := b.Tell, 0
	for at := 2; ; cuts++ {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		b.Tell = func(format string, args ...any) {
			if steps++; steps != at {
				return
			}
			if strings.HasPrefix(format, "copy") || strings.Contains(format, "arrives") {
				at++
			}
			tell("cut before: "+format, args...)
			cancel()
		}
		_, err := b.move(ctx)
		cancel()
		if steps >= at-1 && err != nil {
			continue
		}
		if cuts < 20 {
			t.Errorf("cut %d times", cuts)
		}
		return err
	}
}

// handedOver: the records of both logs name each other, and the receipt of the old one is good.
func (x town) handedOver(old town) {
	x.Helper()
	left, _ := old.core.directory.Rows(moved)
	came, _ := x.core.directory.Rows(moved)
	c := came.Place.Came
	rec, err := old.core.journal.Get(x.Context(), c.Position)
	must(x.T, err)
	r, err := intents.OpenReceipt(c.Receipt, old.core.directory.View())
	must(x.T, err)
	if left.Place.To != x.core.Origin() || left.Place.Left != c.Position || c.Origin != old.core.Origin() || c.Record != rec.Digest() || r.RecordDigest != c.Record || r.Issuer != c.Origin {
		x.Errorf("left %+v, came %+v, receipt %+v", left.Place, c, r)
	}
}

// returns: the tenant goes back, with what it has by now.
func (x town) returns(to town) {
	x.Helper()
	doc, err := to.core.documents.Get(x.Context(), moved, storage.IndexSessions, "ana/s1")
	must(x.T, err)
	doc.ID = "ana/gone" // removed in the other cell
	must(x.T, to.core.documents.Put(x.Context(), moved, storage.IndexSessions, doc))
	turns, want := x.turns(), x.rows()
	_, err = MoveTenant(x.Context(), x.moving(to, func(string) {}))
	must(x.T, err)
	if n := to.turns(); n != turns {
		x.Errorf("%d turns went back, of %d", n, turns)
	}
	if d := cmp.Diff(want, to.rows()); d != "" {
		x.Errorf("the directory (-old +new):\n%s", d)
	}
	if _, err := to.core.documents.Get(x.Context(), moved, storage.IndexSessions, "ana/gone"); err == nil {
		x.Error("a document of the earlier stay is there")
	}
	if status, text := to.says("Are you back?"); status != http.StatusOK {
		x.Errorf("HTTP %d %s", status, text)
	}
}
