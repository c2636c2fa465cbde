package router_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// cluster is a router on the embedded NATS server with the SQLite journal and one executor, each
// with its real NATS user.
type cluster struct {
	*routertest.World
	connect func(user string) bus.Conn
}

func serve(t *testing.T) *cluster {
	t.Helper()
	return serveWith(t, routertest.Options{})
}

func serveWith(t *testing.T, o routertest.Options) *cluster {
	t.Helper()
	o.Open = func(observe storage.Observer) routertest.Journal {
		j, err := sqlite.OpenJournal(t.Context(), t.TempDir(), sqlite.JournalOptions{Observer: observe, FreeFloor: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
		return j
	}
	w := routertest.NewEmpty(t, o)
	w.Begin()
	s, err := natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir(), Executors: map[string][]string{"sessions": {"soul.get"}}, Log: slog.New(slog.DiscardHandler)})
	w.Must(err)
	t.Cleanup(s.Close)
	c := &cluster{World: w, connect: func(user string) bus.Conn {
		conn, err := s.Connect(t.Context(), user)
		w.Must(err)
		t.Cleanup(conn.Close)
		return conn
	}}
	r, err := router.New(router.Config{
		Journal: w.Journal, Records: w.Journal, State: w.Dir, Bus: c.connect(natsserver.Router), Key: w.Signer, KeySecret: routertest.KeySecret,
		Policy: policies.NewLive(w.Policy.Engine()), Now: w.Clock.Now, Log: slog.New(slog.DiscardHandler), Rates: o.Rates,
	})
	w.Must(err)
	w.Router = r
	c.run(r.Serve)
	c.run(func(ctx context.Context, ready chan<- struct{}) error {
		return executors.Serve(ctx, executors.Config{
			Bus: c.connect("sessions"), Name: "sessions", Version: "1.0.0", Origin: w.Origin, Now: w.Clock.Now, Ready: ready,
			RouterKeys: intents.KeysFunc(func(kid string) (intents.Key, error) { return w.Dir.View().Key(kid) }),
		}, map[string]executors.Handler{"soul.get": func(_ context.Context, o *executors.Intent) (*executors.Result, error) {
			return &executors.Result{Value: catalog.Soul{UserID: o.Ticket.Actor.UserID}}, nil
		}})
	})
	w.Must(r.Start(t.Context()))
	return c
}

// run serves until the test ends.
func (c *cluster) run(fn func(context.Context, chan<- struct{}) error) {
	c.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- fn(ctx, ready) }()
	select {
	case <-ready:
	case err := <-done:
		c.Fatal(err)
	}
	c.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			c.Error(err)
		}
	})
}

func ask[T any](c *cluster, user, subject string, data []byte) T {
	c.Helper()
	raw, err := c.connect(user).Request(c.Context(), subject, data)
	c.Must(err)
	var v T
	c.Must(json.Unmarshal(raw, &v))
	return v
}

// Intents over NATS: from an agent's connection through router and executor and back, with the
// ticket verified by the executor itself.
func TestServeIntents(t *testing.T) {
	c := serve(t)
	o := routertest.Intent{By: c.Manager, Type: "soul.get", Args: catalog.SoulGet{}, Key: "k"}
	raw, id := c.SignID(o)
	a := ask[intents.Answer](c, natsserver.Manager, bus.Intents, raw)
	if a.Code != intents.OK || a.IntentID != id || string(a.Outcome.Result) != `{"user_id":"ana"}` {
		t.Fatalf("%+v %+v", a, a.Outcome)
	}
	if again := ask[intents.Answer](c, natsserver.Manager, bus.Intents, raw); !again.Replayed || again.Receipt != a.Receipt {
		t.Errorf("%+v", again)
	}
	if bad := ask[intents.Answer](c, natsserver.Manager, bus.Intents, []byte("{")); bad.Code != intents.SchemaInvalid || bad.Position != nil {
		t.Errorf("%+v", bad)
	}
	o.By, o.Type, o.Args = c.Planner, "skill.find", catalog.SkillFind{Query: "q"}
	if nobody := ask[intents.Answer](c, natsserver.Planner, bus.Intents, c.Sign(o)); nobody.Code != intents.DispatchUnavailable {
		t.Errorf("%+v", nobody)
	}
}

// The gateway's requests to the directory.
func TestServeDirectory(t *testing.T) {
	c := serve(t)
	hash := intents.Digest([]byte("secret"))
	c.Want(c.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{ID: "k1", Hash: hash, UserID: "ana", MaxRoles: []string{"user", "auditor"}, MayAssertUser: true, FrontEnd: true}}), intents.OK)
	c.Want(c.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ana", Roles: []string{"user", "admin"}}}), intents.OK)
	c.Want(c.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "gone", Roles: []string{"user"}, Disabled: true}}), intents.OK)
	marshal := func(v any) []byte {
		raw, err := json.Marshal(v)
		c.Must(err)
		return raw
	}
	key := ask[bus.APIKeyReply](c, natsserver.Gateway, bus.DirectoryAPIKey, marshal(bus.APIKeyRequest{Hash: hash}))
	if d := cmp.Diff(bus.APIKeyReply{Found: true, ID: "k1", Tenant: "default", UserID: "ana", MaxRoles: []string{"user", "auditor"}, MayAssertUser: true, FrontEnd: true}, key); d != "" {
		t.Error(d)
	}
	if none := ask[bus.APIKeyReply](c, natsserver.Gateway, bus.DirectoryAPIKey, marshal(bus.APIKeyRequest{Hash: intents.Digest(nil)})); none.Found {
		t.Errorf("%+v", none)
	}
	c.AddOperator("default", "ops", "user")
	all := []string{"user", "auditor", "admin"}
	for _, q := range []struct {
		ask  bus.UserRequest
		want bus.UserReply
	}{
		{bus.UserRequest{Tenant: "default", UserID: "ana", KeyID: "k1", Roles: all}, bus.UserReply{Roles: []string{"user"}}},
		{bus.UserRequest{Tenant: "default", UserID: "ana", Roles: all}, bus.UserReply{Roles: []string{"user", "admin"}}},
		{bus.UserRequest{Tenant: "default", UserID: "new", KeyID: "k1", Roles: all}, bus.UserReply{Roles: []string{"user", "auditor"}}},
		{bus.UserRequest{Tenant: "default", UserID: "gone", Roles: all}, bus.UserReply{Disabled: true}},
		{bus.UserRequest{Tenant: "default", UserID: "ana", KeyID: "k1", Roles: all, Capability: "artifacts:write"}, bus.UserReply{Roles: []string{"user"}, May: true}},
		{bus.UserRequest{Tenant: "default", UserID: "ana", KeyID: "k1", Roles: all, Capability: "admin:write"}, bus.UserReply{Roles: []string{"user"}}},
		{bus.UserRequest{Tenant: "default", UserID: "gone", Roles: all, Capability: "artifacts:write"}, bus.UserReply{Disabled: true}},
		{bus.UserRequest{Tenant: "default", UserID: "ana", KeyID: "k9", Roles: all}, bus.UserReply{Disabled: true}},
		{bus.UserRequest{Tenant: "default", UserID: "ops", KeyID: "k1", Roles: all}, bus.UserReply{Roles: []string{"user"}, Operator: true}},
		{bus.UserRequest{Tenant: "nowhere", UserID: "ana", Roles: all}, bus.UserReply{Disabled: true}},
	} {
		q.want.Position = c.Dir.View().Position()
		if got := ask[bus.UserReply](c, natsserver.Gateway, bus.DirectoryUser, marshal(q.ask)); cmp.Diff(q.want, got) != "" {
			t.Errorf("%+v: %+v", q.ask, got)
		}
	}
	mine := ask[bus.UserReply](c, natsserver.Gateway, bus.DirectoryUser, marshal(bus.UserRequest{Tenant: "default", UserID: "ana", Roles: all, Keys: true}))
	if string(mine.Keys) != `[{"id":"k1","user_id":"ana","max_roles":["user","auditor"],"may_assert_user":true,"front_end":true}]` {
		t.Errorf("own keys: %s", mine.Keys)
	}
	if got := ask[bus.APIKeyReply](c, natsserver.Gateway, bus.DirectoryAPIKey, []byte("[")); got.Error == "" || got.Found {
		t.Errorf("%+v", got)
	}
	c.Want(c.NewPlan("p1").Open(), intents.OK)
	if got := ask[bus.SilentReply](c, natsserver.Gateway, bus.PlansSilent, []byte(`{}`)); len(got.Plans) != 0 {
		t.Errorf("%+v", got)
	}
}

// A batch over NATS, as over HTTP.
func TestServeBatch(t *testing.T) {
	c := serve(t)
	soul := func(user string) []byte {
		return c.Sign(routertest.Intent{By: c.Manager, Type: "soul.get", Args: catalog.SoulGet{}, User: user})
	}
	raw := batchOf(soul("ana"), soul("bob"))
	b := ask[intents.BatchAnswer](c, natsserver.Manager, bus.Batches, raw)
	if b.Code != intents.OK || codes(&b) != "[OK OK]" {
		t.Fatalf("%+v", b)
	}
	if again := ask[intents.BatchAnswer](c, natsserver.Manager, bus.Batches, raw); !again.Answers[1].Replayed || again.Answers[1].Receipt != b.Answers[1].Receipt {
		t.Errorf("%+v", again)
	}
	if bad := ask[intents.BatchAnswer](c, natsserver.Gateway, bus.Batches, []byte("{")); bad.Code != intents.SchemaInvalid || bad.Answers != nil {
		t.Errorf("%+v", bad)
	}
}
