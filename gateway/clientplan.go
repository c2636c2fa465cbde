package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/state/agents"
)

// clientCall is one tools/call of an MCP client.
type clientCall struct {
	Session string          // of the MCP client, as created by the gateway
	Request string          // id of the call: a repeated call has the same
	Skill   string          // full id
	Args    json.RawMessage // an object; nil: none

	Progress func(bus.StatusData) // gets the progress of a call that runs; nil: nobody waits so long
}

// clientTask is the task text of a client's plan.
const clientTask = "Calls of an MCP client."

// Bounds of a client's plan: how long it accepts calls, which leaves its task time to end, and
// how often a call may meet a plan that accepts none before it is refused.
const (
	clientLife  = 55 * time.Minute
	clientTries = 3
)

// clients are the sessions of MCP clients with their plans. Plans from before a restart are ended
// (endLeft), and their calls are no longer known: a client starts over.
type clients struct {
	manifests *ratelimit.Recent[catalog.Manifest] // of approved skills, by tenant and digest

	mu       sync.Mutex // guards sessions
	sessions map[clientID]*clientSession
}

// clientID is a session of one client: nobody else can use it.
type clientID struct{ tenant, user, key, session string }

func idOf(a actor) clientID { return clientID{a.tenant, a.user, a.keyID, a.session} }

// clientSession has the plan that accepts calls, and the one before it for repeated calls.
type clientSession struct {
	mu          sync.Mutex // guards the rest; locked while a plan is opened, and never during a call
	now, before *clientPlan
	until       time.Time // when it is dropped, if it has no plan
}

// clientPlan is an open plan of a client.
type clientPlan struct {
	actor
	turn, id, task, instance string
	until                    time.Time
	sent                     map[string]bool // requests; of its session's mu

	granting sync.Mutex // guards the rest
	grant    string     // the last one, for calls under the same roles
	granted  []string
	at       time.Time
}

// grantUse is how long the calls of a client share one grant: most calls of a session come in
// bursts.
const grantUse = 30 * time.Second

// manifestShares bound the cached manifests of skills, in bytes: in all, and of a tenant.
var manifestShares = ratelimit.Shares{All: 64 << 20, Tenant: 16 << 20, Key: 16 << 20}

func newClients() *clients {
	return &clients{sessions: make(map[clientID]*clientSession), manifests: ratelimit.NewRecent[catalog.Manifest](manifestShares, 0, time.Now)}
}

// callSkill has a skill called for a client in the plan of its session. It returns the answer to
// the intent, which was executed, has failed, waits for approval or was denied. An error means
// that there is no answer.
//
// Crash: before the commit nothing has happened. After it the intent has the outcome of the call
// (GET /v1/intents/{intent_id}), and the session with its requests is gone: the same request sent
// again is another call.
func (g *Gateway) callSkill(ctx context.Context, a actor, c clientCall) (*intents.Answer, error) {
	a.session = c.Session
	wait := g.pace.call
	if c.Progress != nil {
		wait = g.pace.working
	}
	answer, p, err := g.clientIntent(ctx, a, bus.ClientCall{Type: "skill.call", Request: intents.Digest([]byte(c.Request)), WaitMS: wait.Milliseconds()}, catalog.SkillCall{Skill: c.Skill, Input: c.Args})
	if err != nil || c.Progress == nil || answer.Code != intents.InFlight {
		return answer, err
	}
	ended, err := g.followCall(ctx, a, p, answer.IntentID, c.Progress)
	return ended, stopped(ctx, err, answer.IntentID, p.id)
}

// followCall waits for the outcome of a call that runs, and passes its progress on.
func (g *Gateway) followCall(ctx context.Context, a actor, p *clientPlan, id string, say func(bus.StatusData)) (*intents.Answer, error) {
	reading, cancel := context.WithCancel(ctx)
	var saying sync.WaitGroup
	saying.Go(func() {
		for e := range g.frames(reading, turn{actor: p.actor, id: p.turn, plan: p.id}, 0) {
			var d bus.StatusData
			if e.Kind == bus.FrameStatus && json.Unmarshal(e.Data, &d) == nil && d.IntentID == id {
				say(d)
			}
		}
	})
	defer saying.Wait()
	defer cancel()
	return g.outcome(ctx, a, id)
}

// outcome waits for the outcome of an intent. If the deadline of ctx comes first, the answer is
// IN_FLIGHT.
func (g *Gateway) outcome(ctx context.Context, a actor, id string) (*intents.Answer, error) {
	for pause := g.pace.closed; ; pause = min(2*pause, g.pace.look) {
		answer, err := g.readIntent(ctx, a, id)
		if err != nil || answer.Outcome != nil || answer.Code != intents.ApprovalRequired && answer.Code != intents.InFlight && answer.Code != intents.OK {
			return answer, err
		}
		if answer.Code == intents.ApprovalRequired { // released, and not dispatched yet
			answer.Code = intents.InFlight
		}
		switch err := clock.Sleep(ctx, pause); {
		case errors.Is(err, context.DeadlineExceeded):
			return answer, nil
		case err != nil:
			return nil, err
		}
	}
}

// clientLines reads lines of a result of the session that was returned by reference.
func (g *Gateway) clientLines(ctx context.Context, a actor, session string, lines catalog.ReadLines) (*intents.Answer, error) {
	a.session = session
	answer, _, err := g.clientIntent(ctx, a, bus.ClientCall{Type: "read_lines"}, lines)
	return answer, err
}

// findSkills finds skills for a query among those that the caller may call.
func (g *Gateway) findSkills(ctx context.Context, a actor, session string, query catalog.SkillFind) (*intents.Answer, error) {
	a.session = session
	answer, _, err := g.clientIntent(ctx, a, bus.ClientCall{Type: "skill.find"}, query)
	return answer, err
}

// readResource reads from a skill server in the plan of a client's session.
func (g *Gateway) readResource(ctx context.Context, a actor, session string, args catalog.ResourceRead) (*intents.Answer, error) {
	a.session = session
	answer, _, err := g.clientIntent(ctx, a, bus.ClientCall{Type: "resource.read"}, args)
	return answer, err
}

// clientIntent has an intent signed by the task of a client's plan, and returns the plan. A plan
// that no longer accepts calls is replaced by the next one.
func (g *Gateway) clientIntent(ctx context.Context, a actor, c bus.ClientCall, args any) (*intents.Answer, *clientPlan, error) {
	var err error
	if c.Args, err = json.Marshal(args); err != nil {
		return nil, nil, problem.New(intents.SchemaInvalid, "/arguments", "is no JSON")
	}
	for range clientTries {
		p, err := g.clientPlan(ctx, a, c.Request)
		if err != nil {
			return nil, nil, err
		}
		if err := g.passSkillKey(ctx, a); err != nil {
			return nil, nil, err
		}
		answer, over, err := g.signed(ctx, p, a, c)
		if !over {
			return answer, p, err
		}
		g.clients.leave(p, c.Request)
		go g.endClientPlan(context.WithoutCancel(ctx), p, a)
	}
	return nil, nil, problem.New(intents.Overloaded, "", "the plans of the session end faster than calls are made")
}

// clientPlan returns the plan of a session in which a request was sent before, or the one that
// accepts calls; the first call opens one.
func (g *Gateway) clientPlan(ctx context.Context, a actor, request string) (*clientPlan, error) {
	s := g.clients.session(idOf(a))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = g.cfg.Now().Add(clientLife)
	if s.before != nil && s.before.sent[request] {
		return s.before, nil
	}
	if s.now != nil && g.cfg.Now().After(s.now.until) && !s.now.sent[request] {
		go g.endClientPlan(context.WithoutCancel(ctx), s.now, a)
		s.before, s.now = s.now, nil
	}
	if s.now == nil {
		opening, cancel := lasting(ctx, openTimeout)
		defer cancel()
		p, err := g.openClientPlan(opening, a)
		if err != nil {
			return nil, err
		}
		s.now = p
	}
	if request != "" {
		s.now.sent[request] = true
	}
	return s.now, nil
}

// session returns the session of an id, creating it if it is new.
func (c *clients) session(id clientID) *clientSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[id]
	if s == nil {
		s = &clientSession{}
		c.sessions[id] = s
	}
	return s
}

// leave removes a plan from its session if it no longer accepts calls and has not accepted this
// one.
func (c *clients) leave(p *clientPlan, request string) {
	s := c.session(idOf(p.actor))
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(p.sent, request)
	if s.now == p {
		s.before, s.now = p, nil
	}
}

// openClientPlan opens a plan and has a manager open its task.
//
// A crash in here leaves an idle plan: see endLeft.
func (g *Gateway) openClientPlan(ctx context.Context, a actor) (*clientPlan, error) {
	now := g.cfg.Now()
	p := &clientPlan{actor: a, turn: newID("turn"), id: intents.NewTimedID(intents.KindPlan, now), until: now.Add(clientLife), sent: make(map[string]bool)}
	t, err := g.clientTurn(p, a)
	if err != nil {
		return nil, err
	}
	at := intents.Context{TurnID: p.turn, PlanID: p.id}
	opened, err := g.submit(ctx, a, intent{"plan.open", catalog.PlanOpen{PlanID: p.id, Task: clientTask, Agent: agents.Client, APIKey: a.keyID}, at, t.Grant, ""})
	if err != nil {
		return nil, err
	}
	if opened.Outcome == nil { // it is ended as soon as it is opened
		return nil, unawaited(opened)
	}
	begun, err := g.ofManager(ctx, bus.ClientPlan{TurnRef: t, Digest: opened.IntentID})
	if err != nil {
		if _, cerr := g.submit(ctx, a, intent{"cancel", catalog.Cancel{PlanID: p.id, Reason: "no manager began it"}, at, t.Grant, ""}); cerr != nil {
			g.cfg.Log.WarnContext(ctx, "cancel a client's plan", slog.String("plan_id", p.id), slog.String("error", cerr.Error()))
		}
		return nil, err
	}
	p.task, p.instance = begun.TaskID, begun.Instance
	return p, nil
}

// clientTurn returns the plan with a grant of the caller, issued for this call or one shortly
// before.
func (g *Gateway) clientTurn(p *clientPlan, a actor) (t bus.TurnRef, err error) {
	p.granting.Lock()
	defer p.granting.Unlock()
	if now := g.cfg.Now(); p.grant == "" || !slices.Equal(p.granted, a.roles) || now.Sub(p.at) > grantUse {
		if p.grant, _, err = g.issueGrant(a, p.turn, ""); err != nil {
			return t, err
		}
		p.granted, p.at = a.roles, now
	}
	return a.turnRef(p.turn, p.id, p.grant), nil
}

// ofManager asks a manager to begin or close a client's plan.
func (g *Gateway) ofManager(ctx context.Context, c bus.ClientPlan) (bus.ClientPlanReply, error) {
	reply, err := ask[bus.ClientPlanReply](ctx, g.cfg.Bus, bus.ClientPlans, c)
	if problem.FromError(err).Code == intents.DispatchUnavailable && err != nil {
		err = problem.New(intents.DispatchUnavailable, "", "no manager is there")
	}
	if err == nil && reply.Code != "" {
		err = problem.New(intents.Code(reply.Code), "", reply.Reason)
	}
	return reply, err
}

// signed has the task of a plan sign an intent. over: no intent was signed, and the plan accepts
// no more calls.
func (g *Gateway) signed(ctx context.Context, p *clientPlan, a actor, c bus.ClientCall) (answer *intents.Answer, over bool, err error) {
	if c.TurnRef, err = g.clientTurn(p, a); err != nil {
		return nil, false, err
	}
	c.TaskID = p.task
	question, err := json.Marshal(c)
	if err != nil {
		return nil, false, err
	}
	row, _ := catalog.Builtin().Lookup(c.Type)
	ctx, cancel := context.WithTimeout(ctx, row.Start()+intentTTL)
	defer cancel()
	raw, err := g.cfg.Bus.Request(ctx, bus.ClientCalls(p.instance), question)
	if err != nil {
		return nil, errors.Is(err, bus.ErrNoResponders), stopped(ctx, unanswered(err, "the task"), "", p.id)
	}
	var reply bus.ClientReply[*intents.Answer]
	if err := json.Unmarshal(raw, &reply); err != nil {
		return nil, false, fmt.Errorf("answer of a client's task: %w", err)
	}
	switch {
	case reply.Ended:
		return nil, true, nil
	case reply.Code != "":
		return nil, false, problem.New(intents.Code(reply.Code), "", reply.Reason)
	case c.End:
		return nil, false, nil
	}
	if reply.Answer == nil {
		return nil, false, fmt.Errorf("answer to %s: there is none", c.Type)
	}
	return reply.Answer, reply.Answer.Code == intents.KeyRevoked || reply.Answer.Code == intents.KeyUnknown, nil
}

// endClient ends the plan of a client's session that has ended.
func (g *Gateway) endClient(ctx context.Context, a actor, session string) {
	a.session = session
	if p := g.clients.forget(idOf(a)); p != nil {
		g.endClientPlan(ctx, p, a)
	}
}

// forget removes a session and returns its plan.
func (c *clients) forget(id clientID) *clientPlan {
	c.mu.Lock()
	s := c.sessions[id]
	delete(c.sessions, id)
	c.mu.Unlock()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.now
	s.now = nil
	return p
}

// endClientPlan has the task of a plan end, once its calls have. The plan is closed when none of
// them waits for approval any more (endLeft).
func (g *Gateway) endClientPlan(ctx context.Context, p *clientPlan, a actor) {
	if _, over, err := g.signed(ctx, p, a, bus.ClientCall{End: true}); err != nil && !over {
		g.cfg.Log.InfoContext(ctx, "end of a client's plan", slog.String("plan_id", p.id), slog.String("error", err.Error()))
	}
}

// endLate ends expired plans, and drops sessions without one.
func (g *Gateway) endLate(ctx context.Context) {
	now := g.cfg.Now()
	for id, s := range g.clients.all() {
		if !s.mu.TryLock() {
			continue // a plan is being opened
		}
		p, until := s.now, s.until
		s.mu.Unlock()
		switch {
		case p != nil && now.After(p.until):
			g.clients.leave(p, "")
			go g.endClientPlan(ctx, p, p.actor)
		case p == nil && !until.IsZero() && now.After(until):
			g.clients.forget(id)
		}
	}
}

func (c *clients) all() map[clientID]*clientSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.sessions)
}

// serves reports whether a plan accepts calls of a session of this process.
func (c *clients) serves(p bus.SilentPlan) bool {
	c.mu.Lock()
	s := c.sessions[clientID{p.Tenant, p.UserID, intents.CallerOf(p.Client), p.SessionID}]
	c.mu.Unlock()
	if s == nil {
		return false
	}
	if !s.mu.TryLock() {
		return true // it is opening one
	}
	defer s.mu.Unlock()
	return s.now != nil && s.now.id == p.PlanID
}

// endLeft ends abandoned plans of clients in which nothing waits for approval: a plan whose task
// has ended is complete, and one from before a restart is cancelled. No user is present, so the
// grant is a standing one, as in resumeSilent.
func (g *Gateway) endLeft(ctx context.Context, left []bus.SilentPlan) {
	for _, p := range left {
		if g.clients.serves(p) {
			continue
		}
		if err := g.endOne(ctx, p); err != nil && ctx.Err() == nil {
			g.cfg.Log.InfoContext(ctx, "end a client's plan", slog.String("plan_id", p.PlanID), slog.String("error", err.Error()))
		}
	}
}

func (g *Gateway) endOne(ctx context.Context, p bus.SilentPlan) (err error) {
	a := actorOf(p)
	if a.roles, err = g.rolesOf(ctx, a, p.Roles); err != nil {
		return err
	}
	grant, _, err := g.issueGrant(a, p.TurnID, p.PlanID)
	if err != nil {
		return err
	}
	if p.Done {
		_, err = g.ofManager(ctx, bus.ClientPlan{TurnRef: a.turnRef(p.TurnID, p.PlanID, grant), Close: true})
		return err
	}
	_, err = g.submit(ctx, a, intent{"cancel", catalog.Cancel{PlanID: p.PlanID, Reason: "the client is gone"}, intents.Context{TurnID: p.TurnID, PlanID: p.PlanID}, grant, ""})
	return err
}
