package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	ending "aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

// clientWorld is a gateway with the real router, manager and tasks on a real NATS server. The
// skills' executor counts its calls.
type clientWorld struct {
	*routertest.World
	gateway *Gateway
	actor   actor
	stop    func()
}

func newClientWorld(t *testing.T, tools ...string) *clientWorld {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	w.Pin("bank.pay", catalog.Once)
	w.Pin("bank.rates", catalog.Pure)
	w.Data("approval", `{"once":false}`)
	w.ClientKey(tools...)
	w.Bus.On("skill.load", func(_ context.Context, c routertest.Call) intents.Report {
		var out catalog.SkillLoadResult
		for _, p := range c.Ticket.Pins {
			out.Skills = append(out.Skills, catalog.Manifest{Name: p.Skill, Description: "A skill.", InputSchema: json.RawMessage(`{}`), ExecutionMode: "sync", Endpoint: "bank", Digest: p.Digest, Effect: catalog.Once})
		}
		return routertest.Done(out)
	})
	return start(w)
}

// localExecutors has a router serve on the bus, and dispatch within the process.
type localExecutors struct {
	bus.Conn
	executors *routertest.Bus
}

func (l localExecutors) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	return l.executors.Request(ctx, subject, data)
}

// noBlobs stores nothing: results are small.
type noBlobs struct{ storage.Blobs }

func (noBlobs) Wipe(context.Context, storage.Scope) error { return nil }

// start starts all processes over the world's records.
func start(w *routertest.World) *clientWorld { w.Helper(); return startOn(w, w.Journal) }

func startOn(w *routertest.World, journal storage.Journal) *clientWorld {
	w.Helper()
	ns, err := natsserver.Start(w.Context(), natsserver.Options{Dir: w.TempDir(), Log: slog.New(slog.DiscardHandler)})
	w.Must(err)
	var conns []bus.Conn
	connect := func(user string) bus.Conn {
		c, err := ns.Connect(w.Context(), user)
		w.Must(err)
		conns = append(conns, c)
		return c
	}
	log := slog.New(slog.DiscardHandler)
	r, err := router.New(router.Config{
		Journal: journal, Records: w.Journal, State: w.Dir, Bus: localExecutors{connect(natsserver.Router), w.Bus}, Key: w.Signer, KeySecret: routertest.KeySecret, Catalog: w.Catalog, Blobs: noBlobs{},
		Policy: policies.NewLive(w.Policy.Engine()), Now: w.Clock.Now, Log: log, Rates: router.Rates{Signer: -1, Tenant: -1},
	})
	w.Must(err)
	w.Must(r.Start(w.Context()))
	w.Must(r.Recover(w.Context()))
	end, leave := context.WithCancel(context.Background())
	ctx, cancel := context.WithCancel(ending.WithEnd(w.Context(), end))
	var all sync.WaitGroup
	serve := func(fn func(context.Context, chan<- struct{}) error) {
		ready := make(chan struct{})
		all.Go(func() { _ = fn(ctx, ready) })
		<-ready
	}
	serve(r.Serve)
	serve(agentic.NewTasks(agentic.Config{Bus: connect(natsserver.Task), Origin: w.Origin, Now: w.Clock.Now, Log: log}).Serve)
	serve(agentic.NewManager(agentic.Config{Bus: connect(natsserver.Manager), Key: &w.Manager, Origin: w.Origin, Now: w.Clock.Now, Log: log}).Serve)
	g, err := New(Config{Bus: connect(natsserver.Gateway), Frames: connect(natsserver.Frames), Key: w.Gateway, Origin: w.Origin, Now: w.Clock.Now, Log: log})
	w.Must(err)
	g.pace.resume = 10 * time.Millisecond
	all.Go(func() { _ = g.Run(ctx) })
	stop := sync.OnceFunc(func() {
		cancel()
		leave()
		for _, c := range conns {
			c.Close()
		}
		all.Wait()
		ns.Close()
	})
	w.Cleanup(stop)
	return &clientWorld{World: w, gateway: g, actor: actor{tenant: "default", user: "ana", keyID: "k1", roles: []string{"user"}}, stop: stop}
}

// restart ends every process and starts them anew over the records.
func (w *clientWorld) restart() *clientWorld {
	w.Helper()
	w.stop()
	return start(w.Reopen())
}

func (w *clientWorld) call(request, skill, args string) (*intents.Answer, error) {
	return w.gateway.callSkill(w.Context(), w.actor, clientCall{Session: "mcp1", Request: request, Skill: skill, Args: json.RawMessage(args)})
}

func (w *clientWorld) called(request, skill, args string, code intents.Code) *intents.Answer {
	w.Helper()
	a, err := w.call(request, skill, args)
	w.Must(err)
	return w.Want(a, code)
}

func (w *clientWorld) calls(want int) {
	w.Helper()
	if got := len(w.Bus.Calls("skill.call")); got != want {
		w.Errorf("%d calls at the server, not %d", got, want)
	}
}

// plans returns the statuses of the clients' plans, in order.
func (w *clientWorld) plans() (out []catalog.PlanStatus) {
	for _, r := range w.Records() {
		if e := r.Parts["envelope"]; e == nil {
			continue
		}
		b, err := r.Body()
		w.Must(err)
		if b.Intent.Type != "plan.open" {
			continue
		}
		v, _, _ := w.Dir.PlanWithoutTexts("default", b.Context.PlanID)
		out = append(out, v.Status)
	}
	return out
}

// soon waits until the plans have these statuses.
func (w *clientWorld) soon(want ...catalog.PlanStatus) {
	w.Helper()
	until(w, fmt.Sprint("plans ", want), func() bool { return slices.Equal(w.plans(), want) })
}

// until waits for an effect of another goroutine.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	deadline := time.After(patience)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatal("not so in time: " + what)
		case <-look.C:
		}
	}
}

// TestClientCalls: two equal calls have two effects, a repeated request has one, and a used key
// serves no other call.
func TestClientCalls(t *testing.T) {
	w := newClientWorld(t)
	first := w.called("1", "bank.pay", `{"n":1}`, intents.OK)
	w.called("2", "bank.pay", `{"n":1}`, intents.OK)
	w.calls(2)
	again := w.called("1", "bank.pay", `{"n":1}`, intents.OK)
	if again.IntentID != first.IntentID || again.Receipt != first.Receipt || first.Receipt == "" {
		t.Errorf("%+v and %+v", first, again)
	}
	w.calls(2)
	for _, other := range []struct{ skill, args string }{{"bank.pay", `{"n":2}`}, {"bank.rates", `{"n":1}`}} {
		_, err := w.call("1", other.skill, other.args)
		if p := problem.FromError(err); p.Code != intents.ConflictIdempotency || !strings.Contains(p.Detail, "Idempotency-Key") {
			t.Errorf("%+v", p)
		}
	}
	w.called("3", "bank.nothing", `{}`, intents.TaskScope)
	w.called(`"1"`, "bank.rates", `{}`, intents.OK) // another id than 1
	w.calls(3)
	w.soon(catalog.PlanExecuting)
	w.gateway.endClient(t.Context(), w.actor, "mcp1")
	w.soon(catalog.PlanComplete)
	w.called("1", "bank.pay", `{"n":1}`, intents.OK) // of another session
	w.calls(4)
}

// TestClientCallsAtOnce: concurrent requests make one call for each request id, however often it
// is sent.
func TestClientCallsAtOnce(t *testing.T) {
	w := newClientWorld(t)
	var all sync.WaitGroup
	for i := range 90 {
		all.Go(func() {
			if a, err := w.call(fmt.Sprint(i%30), "bank.pay", `{"n":1}`); err != nil || a.Code != intents.OK {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
	all.Wait()
	w.calls(30)
	w.soon(catalog.PlanExecuting)
}

// TestClientDrops: a client whose connection ends while its call runs has called once, and gets
// the answer when it sends the request again.
func TestClientDrops(t *testing.T) {
	w := newClientWorld(t)
	reached, goOn := make(chan struct{}), make(chan struct{})
	w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
		close(reached)
		<-goOn
		return routertest.Done(catalog.SkillCallResult{Output: json.RawMessage(`"paid"`)})
	})
	ctx, drop := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := w.gateway.callSkill(ctx, w.actor, clientCall{Session: "mcp1", Request: "1", Skill: "bank.pay", Args: json.RawMessage(`{"n":1}`)})
		gone <- err
	}()
	<-reached
	drop()
	if err := <-gone; err == nil {
		t.Error("who is gone got an answer")
	}
	close(goOn)
	a := w.called("1", "bank.pay", `{"n":1}`, intents.OK)
	if !strings.Contains(string(a.Outcome.Result), "paid") {
		t.Errorf("%s", a.Outcome.Result)
	}
	w.calls(1)
}

// TestClientCallRuns: a call that outlasts the wait of its client runs, under one intent however
// often it is asked for, and takes no place from others. It happens once.
func TestClientCallRuns(t *testing.T) {
	w := newClientWorld(t)
	w.gateway.pace.call = 50 * time.Millisecond
	goOn := make(chan struct{})
	w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
		<-goOn
		return routertest.Done(catalog.SkillCallResult{Output: json.RawMessage(`"paid"`)})
	})
	id := w.called("1", "bank.pay", `{"n":1}`, intents.InFlight).IntentID
	if again := w.called("1", "bank.pay", `{"n":1}`, intents.InFlight).IntentID; again != id || id == "" {
		t.Errorf("%s is then %s", id, again)
	}
	close(goOn)
	w.gateway.pace.call = time.Minute
	if a := w.called("1", "bank.pay", `{"n":1}`, intents.OK); a.IntentID != id {
		t.Errorf("%s has the outcome of %s", a.IntentID, id)
	}
	w.calls(1)
}

// TestClientHold: a call that waits for approval does not delay others, and its outcome can be
// read after the approval. The plan is closed when the session has ended and nothing waits any
// more.
func TestClientHold(t *testing.T) {
	w := newClientWorld(t)
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"approver"}}}), intents.OK)
	hash := intents.Digest([]byte("ben"))
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{ID: "ben", Hash: hash, UserID: "ben", MaxRoles: []string{"approver"}}}), intents.OK)
	w.Approval(`{"once":true}`, "ben")
	held := w.called("1", "bank.pay", `{"n":1}`, intents.ApprovalRequired)
	if held.Decision.Hold == nil || held.Approval == "" {
		t.Errorf("%+v", held)
	}
	w.called("2", "bank.rates", `{}`, intents.OK)
	w.called("1", "bank.pay", `{"n":1}`, intents.ApprovalRequired)
	w.calls(1)
	w.gateway.endClient(t.Context(), w.actor, "mcp1")
	w.called("1", "bank.rates", `{}`, intents.OK)
	w.soon(catalog.PlanExecuting, catalog.PlanExecuting)
	ben := actor{tenant: "default", user: "ben", keyID: "ben", roles: []string{"approver"}}
	_, err := request[catalog.ApproveResult](t.Context(), w.gateway, ben, typeApprove, catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove}, "")
	w.Must(err)
	w.soon(catalog.PlanComplete, catalog.PlanExecuting)
	w.calls(3)
	a, err := w.Router.Await(t.Context(), *held.Position)
	w.Must(err)
	w.Want(a, intents.OK)
}

// TestClientNextPlan: after 200 calls, and after its time, a plan is replaced by the next one. A
// repeated request still gets the first answer.
func TestClientNextPlan(t *testing.T) {
	w := newClientWorld(t)
	first := w.called("0", "bank.pay", `{}`, intents.OK)
	for i := range catalog.MaxClientCalls {
		w.called(fmt.Sprint(i+1), "bank.rates", `{}`, intents.OK)
	}
	w.calls(catalog.MaxClientCalls + 1)
	w.soon(catalog.PlanComplete, catalog.PlanExecuting)
	if again := w.called("0", "bank.pay", `{}`, intents.OK); again.IntentID != first.IntentID {
		t.Errorf("%+v", again)
	}
	w.calls(catalog.MaxClientCalls + 1)
	w.Clock.Move(clientLife + time.Minute)
	w.soon(catalog.PlanComplete, catalog.PlanComplete)
	w.called("x", "bank.rates", `{}`, intents.OK)
	w.soon(catalog.PlanComplete, catalog.PlanComplete, catalog.PlanExecuting)
	w.Clock.Move(clientLife + time.Minute)
	w.soon(catalog.PlanComplete, catalog.PlanComplete, catalog.PlanComplete)
	until(t, "the session is forgotten", func() bool { return len(w.gateway.clients.all()) == 0 })
}

// TestClientPlanMissing: a plan that somebody has ended is replaced by the next one, and a user
// without the right is refused.
func TestClientPlanMissing(t *testing.T) {
	w := newClientWorld(t)
	w.called("1", "bank.rates", `{}`, intents.OK)
	s := w.gateway.clients.session(clientID{"default", "ana", "k1", "mcp1"})
	w.Must(w.gateway.cancelled(s.now))
	w.called("2", "bank.rates", `{}`, intents.OK)
	w.soon(catalog.PlanFailed, catalog.PlanExecuting)
	w.actor.roles = []string{}
	if a, err := w.call("3", "bank.rates", `{}`); err != nil || a.Code != intents.RBACForbidden {
		t.Errorf("%+v, %v", a, err)
	}
	w.actor.session = "another"
	_, err := w.gateway.callSkill(t.Context(), w.actor, clientCall{Session: "mcp2", Request: "1", Skill: "bank.rates"})
	if p := problem.FromError(err); p.Code != intents.RBACForbidden {
		t.Errorf("%+v", p)
	}
}

// TestClientSkills: a client sees the skills that its key allows, as they were approved, and
// their manifests are loaded once.
func TestClientSkills(t *testing.T) {
	for want, tools := range map[string][]string{"bank.pay bank.rates": nil, "bank.rates": {"bank.rates", "mail.*"}} {
		w := newClientWorld(t, tools...)
		for range 2 {
			got, err := w.gateway.clientSkills(t.Context(), w.actor)
			w.Must(err)
			var names string
			for _, m := range got {
				names += m.Name + " "
				if m.Effect != map[string]catalog.Effect{"bank.pay": catalog.Once, "bank.rates": catalog.Pure}[m.Name] || m.Description == "" {
					t.Errorf("%+v", m)
				}
			}
			if diff := cmp.Diff(want+" ", names); diff != "" {
				t.Error(diff)
			}
		}
		if n := len(w.Bus.Calls("skill.load")); n != 1 {
			t.Errorf("loaded %d times", n)
		}
		w.soon(catalog.PlanComplete)
	}
}

// TestClientLines: lines of a result are read in the plan of the session.
func TestClientLines(t *testing.T) {
	w := newClientWorld(t)
	a, err := w.gateway.clientLines(t.Context(), w.actor, "mcp1", catalog.ReadLines{FileID: "f_1", N: 2})
	w.Must(err)
	w.Want(a, intents.OK)
}

func (g *Gateway) cancelled(p *clientPlan) error {
	_, err := request[catalog.PlanView](context.Background(), g, p.actor, "cancel", catalog.Cancel{PlanID: p.id}, p.id)
	return err
}
