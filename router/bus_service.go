package router

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// Serve serves intents over NATS, and the gateway's questions to the directory. It returns when ctx
// ends and every accepted intent has its outcome, or is left open because the process ends. ready
// is closed once it listens.
func (r *Router) Serve(ctx context.Context, ready chan<- struct{}) error {
	defer r.running.Wait()
	return r.cfg.Bus.Serve(ctx, bus.Service{
		Name: bus.ServiceName("router"), Version: "1.0.0", Description: "decides signed intents", Workers: r.cfg.Slots + r.cfg.ChildSlots + r.cfg.Waits,
		Each: map[string]bus.Handler{
			bus.Intents:           r.deciding(r.serveIntent),
			bus.Batches:           r.deciding(r.serveBatch),
			bus.DirectoryAPIKey:   r.deciding(questions(r, bus.APIKeyReply{Error: "not an API key request"}, r.apiKey)),
			bus.DirectoryUser:     r.deciding(questions(r, bus.UserReply{Error: "not a user request", Disabled: true}, r.user)),
			bus.DirectoryRegistry: r.deciding(questions(r, bus.RegistryReply{Error: "not a registry request"}, r.Registry)),
			bus.PlansSilent:       r.deciding(r.serveSilent),
		},
	}, ready)
}

// awaitOnBus is how long an intent over NATS waits for the outcome of an equal one in flight. Our
// submitters always wait, until their own deadline.
const awaitOnBus = 2 * time.Minute

func (r *Router) serveIntent(ctx context.Context, raw []byte) []byte {
	a, err := r.SubmitAndWait(ctx, raw, awaitOnBus)
	if err != nil {
		a = RefusalAnswer(raw, err)
	}
	return r.reply(a)
}

func (r *Router) serveBatch(ctx context.Context, raw []byte) []byte {
	return r.reply(r.SubmitBatch(ctx, raw, awaitOnBus))
}

// SubmitAndWait submits an intent and waits for an equal one in flight. If too many callers wait
// already, the answer is IN_FLIGHT at once. A router that does not decide sends the intent to the one
// that does, and waits as long as that.
func (r *Router) SubmitAndWait(ctx context.Context, raw []byte, wait time.Duration) (*intents.Answer, error) {
	if !r.decides() {
		return forward[*intents.Answer](ctx, r, bus.Intents, raw)
	}
	if err := r.unready(); err != nil {
		return nil, err
	}
	a, env, err := r.submit(ctx, raw)
	if err != nil || a.Code != intents.InFlight || a.Position == nil || wait <= 0 {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	later, err := r.awaitIfRoom(ctx, env, *a.Position)
	if err != nil || later == nil {
		return a, nil // the answer remains IN_FLIGHT
	}
	later.TraceID, later.Duplicate = a.TraceID, a.Duplicate
	return later, nil
}

// awaitIfRoom is Await if a place to wait is free; nil means that too many wait already.
func (r *Router) awaitIfRoom(ctx context.Context, of *intents.Envelope, position int64) (*intents.Answer, error) {
	leave, ok := r.waits.Take(of.Principal().Tenant, keyOf(of))
	if !ok {
		return nil, nil
	}
	defer leave()
	return r.Await(ctx, position)
}

// RefusalAnswer is the answer about an intent that left no record. An error that is not a refusal
// becomes INTERNAL, without details.
func RefusalAnswer(raw []byte, err error) *intents.Answer {
	a := &intents.Answer{Code: intents.Internal, Reason: intents.Internal.Info().Title, Hint: intents.Internal.Info().Hint}
	var refusal *intents.Refusal
	if errors.As(err, &refusal) {
		a.Code, a.Pointer, a.Reason, a.Hint = refusal.Code, refusal.Pointer, refusal.Reason, refusal.Hint
		a.Violations, a.RetryAfter = refusal.Violations, refusal.Seconds()
	}
	if u, perr := intents.Parse(raw); perr == nil {
		a.IntentID, a.TraceID = u.ID(), u.TraceID()
	}
	return a
}

func (r *Router) apiKey(q bus.APIKeyRequest) bus.APIKeyReply {
	key, tenant, ok := r.state.APIKey(q.Hash)
	if !ok {
		return bus.APIKeyReply{}
	}
	return bus.APIKeyReply{Found: true, ID: key.ID, Tenant: tenant, UserID: key.UserID, MaxRoles: key.MaxRoles, MayAssertUser: key.MayAssertUser, FrontEnd: key.FrontEnd, InPerson: key.InPerson}
}

func (r *Router) user(q bus.UserRequest) bus.UserReply {
	roles, disabled := r.state.Directory().RolesNow(q.Tenant, q.UserID, q.KeyID, q.Roles)
	may := false
	if q.Capability != "" && !disabled {
		caps, _ := r.state.View().Capabilities(q.Tenant, roles)
		may = state.Covers(caps, q.Capability)
	}
	reply := bus.UserReply{Roles: roles, Disabled: disabled, May: may, Operator: r.state.HasOperator(q.Tenant, q.UserID), RevokedBefore: r.state.View().RevokedBefore(q.Tenant, q.UserID)}
	var spent *intents.Refusal
	if q.Capability != "" && errors.As(r.state.CheckBudget(q.Tenant, q.UserID, r.cfg.Now()), &spent) {
		reply.SpentBudget = spent.Reason
	}
	reply.Stopped = r.state.View().TenantData(q.Tenant)[catalog.KeyStop]
	reply.Position = r.state.View().Position()
	if q.Agents {
		reply.Agents = r.state.AgentsOf(q.Tenant)
		if len(q.Roles) > 0 {
			caps, _ := r.state.View().Capabilities(q.Tenant, roles)
			reply.Agents = slices.DeleteFunc(reply.Agents, func(name string) bool { return !state.Covers(caps, "agents:run:"+name) })
		}
	}
	if q.Skills {
		reply.Skills, _ = json.Marshal(r.state.Directory().ClientPins(q.Tenant, q.KeyID)) // plain data
	}
	if q.Keys {
		reply.Keys, _ = json.Marshal(r.state.Directory().KeysOf(q.Tenant, q.UserID)) // plain data
	}
	return reply
}

// Registry returns the registry that a tenant has in force, and what prevents its use.
func (r *Router) Registry(q bus.RegistryRequest) bus.RegistryReply {
	out := bus.RegistryReply{Breakers: []bus.Breaker{}}
	out.Revision, out.Digest, out.Bundle = r.state.InForce(q.Tenant)
	for _, b := range r.Breakers(q.Tenant) {
		out.Breakers = append(out.Breakers, bus.Breaker{Server: b.Server, Status: string(b.Status), Failures: b.Failures, Since: b.Since, Next: b.Next})
	}
	return out
}

func (r *Router) serveSilent(_ context.Context, _ []byte) []byte {
	began, claimed := r.began, []state.Silent(nil)
	if r.cfg.Term != nil { // drivers do not end with a router
		began, claimed = 0, r.state.Silent(math.MaxInt64)
	}
	return r.reply(bus.SilentReply{
		Plans: silentPlans(r.state.Silent(began)), Claimed: silentPlans(claimed), Due: r.dueNow(), Dreams: silentPlans(r.state.Undreamt()),
		Patched: silentPlans(r.state.PatchedRuns()), Abandoned: silentPlans(r.state.AbandonedPlans(began, r.cfg.Now())),
	})
}

func silentPlans(all []state.Silent) []bus.SilentPlan {
	out := []bus.SilentPlan{}
	for _, s := range all {
		p, days := s.Plan, 0
		if p.Run != nil {
			days = p.Run.MaxDays
		}
		out = append(out, bus.SilentPlan{
			TurnRef: bus.TurnRef{Tenant: p.TenantID, UserID: p.UserID, PlanID: p.PlanID, SessionID: p.SessionID, TurnID: p.TurnID, TraceID: s.Trace},
			Run:     p.Run != nil, Days: days,
			Epoch: p.Epoch, Revision: p.Revision, Roles: s.Roles, Client: s.Client, OpenedAt: p.CreatedAt,
			Done: len(p.Steps) > 0 && p.Steps[0].Status == catalog.StepDone,
		})
	}
	return out
}

// questions handles requests of one kind; wrong is the reply to a malformed one.
func questions[Q, R any](r *Router, wrong R, answer func(Q) R) bus.Handler {
	return func(_ context.Context, data []byte) []byte {
		var q Q
		if err := json.Unmarshal(data, &q); err != nil {
			return r.reply(wrong)
		}
		return r.reply(answer(q))
	}
}

func (r *Router) reply(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		r.cfg.Log.Error("reply", slog.String("error", err.Error()))
	}
	return out
}
