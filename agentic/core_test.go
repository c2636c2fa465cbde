package agentic

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// patience bounds waits that end at once in a correct layer.
const patience = time.Minute

const origin = "writ/test"

// theTurn is the turn that all tests work on; its grant comes from the core.
var theTurn = Turn{TurnRef: bus.TurnRef{Tenant: "acme", UserID: "ana", SessionID: "sess_1", TurnID: "turn_1", PlanID: "plan_1", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"}}

// placed is an intent that the core verified.
type placed struct {
	Type       string
	Role       intents.Role
	Place      Place
	Call, Tool string // of an agent
	Occurrence int
	Key        string
	Args       json.RawMessage
	Grant      string // its id
	ID         string
}

// core stands for the router: it verifies every intent for real and answers as the test
// specifies.
type core struct {
	t       *testing.T
	server  *natsserver.Server
	signers map[intents.Role]intents.Signer

	mu      sync.Mutex // guards the rest
	keys    map[string]intents.Key
	intents []placed
	moved   chan struct{} // closed at the next intent
	reply   map[string]func(placed) *intents.Answer
	counts  map[string]int // of figures

	now func() time.Time // of the roles
}

func (c *core) figure(name, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[name+" "+value]++
}

func (c *core) figures() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

func newCore(t *testing.T) *core {
	t.Helper()
	s, err := natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c := &core{
		t: t, server: s, signers: map[intents.Role]intents.Signer{}, keys: map[string]intents.Key{}, moved: make(chan struct{}),
		reply: map[string]func(placed) *intents.Answer{}, counts: map[string]int{}, now: time.Now,
	}
	for _, role := range []intents.Role{intents.RoleGateway, intents.RoleManager, intents.RolePlanner, intents.RoleWorkflow} {
		key, err := intents.GenerateSigner(role)
		if err != nil {
			t.Fatal(err)
		}
		c.signers[role], c.keys[key.KID] = key, key.VerificationKey()
	}
	c.serve(natsserver.Router, func(ctx context.Context, conn bus.Conn, ready chan<- struct{}) error {
		return conn.Serve(ctx, bus.Service{
			Name: bus.ServiceName(natsserver.Router), Version: "1.0.0",
			Each: map[string]bus.Handler{bus.Intents: c.take},
		}, ready)
	})
	return c
}

// serve runs a service as a user until the test ends.
func (c *core) serve(user string, fn func(ctx context.Context, conn bus.Conn, ready chan<- struct{}) error) {
	c.t.Helper()
	conn := c.connect(user)
	ctx, cancel := context.WithCancel(c.t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- fn(ctx, conn, ready) }()
	select {
	case <-ready:
	case err := <-ended:
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Errorf("%s: %v", user, err)
		}
	})
}

func (c *core) connect(user string) bus.Conn {
	c.t.Helper()
	conn, err := c.server.Connect(c.t.Context(), user)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(conn.Close)
	return conn
}

// config returns the configuration of a role that runs as a user.
func (c *core) config(user string, m model.Model) Config {
	c.t.Helper()
	cfg := Config{Bus: c.connect(user), Origin: origin, Model: m, Now: c.now, Log: slog.New(slog.DiscardHandler)}
	if key, ok := c.signers[intents.Role(user)]; ok {
		cfg.Key = &key
	}
	return cfg
}

// grant issues a grant for the turn.
func (c *core) grant(id string) string {
	c.t.Helper()
	now := time.Now()
	token, err := intents.IssueGrant(c.signers[intents.RoleGateway], intents.Grant{
		Issuer: origin, Audience: origin, Subject: theTurn.UserID, Tenant: theTurn.Tenant,
		Roles: []string{"user"}, Session: theTurn.SessionID, Turn: theTurn.TurnID, IssuedAt: now.Unix(), Expires: now.Add(time.Minute).Unix(), ID: id,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return token
}

// turn returns the turn with a grant of its own.
func (c *core) turn() Turn {
	t := theTurn
	t.Grant = c.grant("first")
	return t
}

// on sets the answer for a type of intent; the default is success.
func (c *core) on(typ string, fn func(placed) *intents.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reply[typ] = fn
}

// take judges an intent as the first stages of a router do.
func (c *core) take(_ context.Context, raw []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := c.verify(raw)
	if err != nil {
		c.t.Errorf("an intent that no router would take: %v\n%s", err, raw)
		return marshal(refuse(intents.CodeOf(err), err.Error())(p))
	}
	fn, ok := c.reply[p.Type]
	if !ok {
		fn = done(struct{}{})
	}
	a := fn(p)
	a.IntentID = p.ID
	if p.Type == "step" && a.Code == intents.OK {
		var s catalog.Step
		if err := json.Unmarshal(p.Args, &s); err == nil {
			c.admit(s)
		}
	}
	if p.Type == intents.TypeAgentAsk && a.Code == intents.OK {
		c.admitTask(p)
	}
	c.intents = append(c.intents, p)
	close(c.moved)
	c.moved = make(chan struct{})
	return marshal(a)
}

func (c *core) verify(raw []byte) (placed, error) {
	u, err := intents.Parse(raw)
	if err != nil {
		return placed{}, err
	}
	e, err := u.Verify(intents.Verifier{Origin: origin, Now: time.Now(), Keys: intents.KeysFunc(func(kid string) (intents.Key, error) {
		if k, ok := c.keys[kid]; ok {
			return k, nil
		}
		return intents.Key{}, intents.Refuse(intents.KeyUnknown, "/sig", "no such key")
	})})
	if err != nil {
		return placed{}, err
	}
	at := e.Context()
	p := placed{
		Type: e.Type(), Role: e.Signer().Role, Place: Place{Revision: at.Revision, Step: at.Step, TaskID: at.TaskID, Ask: at.Ask, Cause: at.Cause}, Call: at.Call, Tool: at.Tool, Occurrence: at.Occurrence, Key: e.Constraints().IdempotencyKey,
		Args: e.Args(), Grant: e.Grant().ID, ID: e.ID(),
	}
	row, ok := catalog.Builtin().Lookup(p.Type)
	if !ok || !row.MaySign(p.Role) {
		return p, intents.Refuse(intents.KeyRole, "", "may not sign "+p.Type)
	}
	s, err := row.ArgsSchema()
	if err != nil {
		return p, err
	}
	if v := s.ValidateBytes(p.Args); len(v) > 0 {
		return p, intents.Refuse(intents.SchemaInvalid, v[0].Pointer, v[0].Reason)
	}
	if p.Role == intents.RoleTask && e.Signer().Task != at.TaskID {
		return p, intents.Refuse(intents.TaskScope, "", "not the key of "+at.TaskID)
	}
	return p, nil
}

// admit registers a task's key, as the state does when it applies a committed step.
func (c *core) admit(s catalog.Step) {
	k, err := s.JWK.ToKey()
	if err != nil {
		c.t.Error(err)
		return
	}
	pop := s.PoP
	s.PoP = ""
	if err := intents.VerifyPoP(pop, k, s); err != nil {
		c.t.Error(err)
	}
	k.Role, k.Task = intents.RoleTask, s.TaskID
	c.keys[k.KID] = k
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data of a test
	}
	return b
}

// allPlaced returns the intents so far.
func (c *core) allPlaced() []placed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.intents)
}

// types returns the types of intents, in order of arrival.
func types(list []placed) []string {
	out := []string{}
	for _, o := range list {
		out = append(out, o.Type)
	}
	return out
}

// ofType returns the intents of one type.
func (c *core) ofType(typ string) []placed {
	return slices.DeleteFunc(c.allPlaced(), func(p placed) bool { return p.Type != typ })
}

// The answers of a core.

func done(result any) func(placed) *intents.Answer {
	return func(placed) *intents.Answer {
		return &intents.Answer{Code: intents.OK, Outcome: &intents.Outcome{Attempt: 1, Status: intents.Done, Code: intents.OK, Result: marshal(result)}}
	}
}

func refuse(code intents.Code, reason string) func(placed) *intents.Answer {
	return func(placed) *intents.Answer { return &intents.Answer{Code: code, Reason: reason} }
}

func outcome(code intents.Code, status intents.Status, retryable bool) func(placed) *intents.Answer {
	return func(placed) *intents.Answer {
		return &intents.Answer{Code: code, Reason: "it did not work", Outcome: &intents.Outcome{Attempt: 1, Status: status, Code: code, Retryable: retryable}}
	}
}

// inTurn answers the first intent with the first answer, and so on; the last answer repeats.
func inTurn(fns ...func(placed) *intents.Answer) func(placed) *intents.Answer {
	n := -1
	return func(p placed) *intents.Answer {
		n = min(n+1, len(fns)-1)
		return fns[n](p)
	}
}
