package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/internal/tracing"
)

// maxRuns bounds how many plans one process of a role runs at once, of all tenants. It refuses
// further ones, so that nobody waits in vain.
const maxRuns = 1024

// dispatch accepts the dispatches of one process and runs each plan.
type dispatch struct {
	cfg      Config
	role     string
	strategy func(*Run) strategy
	grants   *renewals
	runs     sync.WaitGroup
	room     *ratelimit.Places // of runs
}

func newDispatch(cfg Config, role string, of func(*Run) strategy) *dispatch {
	return &dispatch{cfg: cfg, role: role, strategy: of, grants: newRenewals(), room: ratelimit.NewPlaces(maxRuns)}
}

// serve accepts dispatches until ctx ends, then waits for the runs. They use ctx too: they stop
// at their next intent, and the plans continue after a restart.
func (d *dispatch) serve(ctx context.Context, s bus.Service, ready chan<- struct{}) error {
	defer d.runs.Wait()
	s.Name, s.Version, s.Queue, s.Workers = bus.ServiceName(d.role), "1.0.0", d.role, atOnce
	if s.Endpoints == nil {
		s.Endpoints = make(map[string]bus.Handler)
	}
	s.Endpoints[bus.Agent(d.role)] = answer(d.cfg.Log, func(asked context.Context, h bus.PlanDispatch) bus.PlanDispatchReply {
		return d.accept(tracing.With(ctx, asked), h)
	})
	s.Endpoints[bus.Grant(d.role, d.cfg.Bus.Instance())] = answer(d.cfg.Log, d.grants.take)
	s.Each = map[string]bus.Handler{bus.FindRun(d.role): d.findRun}
	return d.cfg.Bus.Serve(ctx, s, ready)
}

// findRun returns the driver of a plan, if this process runs it, and stops it if the plan is cancelled
// or an operator has stopped it.
func (d *dispatch) findRun(ctx context.Context, data []byte) []byte {
	var asked bus.FindRunRequest
	if json.Unmarshal(data, &asked) != nil {
		return nil
	}
	for _, plan := range asked.Plans {
		if driver, ok := d.grants.driverOf(plan); ok {
			d.grants.take(ctx, bus.FreshGrant{PlanID: plan, Driver: driver, Why: asked.Why})
		}
	}
	driver, ok := d.grants.driverOf(asked.PlanID)
	if !ok {
		return nil
	}
	if asked.StoppedBy != "" {
		d.grants.take(ctx, bus.FreshGrant{PlanID: asked.PlanID, Driver: driver, StoppedBy: asked.StoppedBy})
	}
	reply, _ := json.Marshal(bus.FindRunReply{Driver: driver, Instance: d.cfg.Bus.Instance()}) // plain data
	return reply
}

// accept accepts a plan, if there is room, and starts to run it.
func (d *dispatch) accept(ctx context.Context, h bus.PlanDispatch) bus.PlanDispatchReply {
	leave, ok := d.room.Take(h.Tenant, keyOf(h.Grant))
	if !ok {
		return bus.PlanDispatchReply{Code: string(intents.Overloaded), Reason: "the " + d.role + " takes no more plans"}
	}
	d.runs.Go(func() {
		defer leave()
		ctx, span := tracing.StartIn(logging.By(logging.In(ctx, h.TraceID), d.role, "turn"), h.TraceID, "turn", tracing.Plan.String(h.PlanID))
		defer span.End()
		d.run(ctx, h)
		d.cfg.Log.InfoContext(ctx, "agent.turn", slog.String("plan_id", h.PlanID))
	})
	return bus.PlanDispatchReply{Accepted: true, Instance: d.cfg.Bus.Instance()}
}

// run runs a plan to its end, until only people can continue it, or until ctx ends. It follows
// fresh grants meanwhile.
func (d *dispatch) run(ctx context.Context, h bus.PlanDispatch) {
	cfg := d.cfg
	cfg.Log = logging.WithContext(ctx, cfg.Log)
	r := newRun(cfg, d.cfg.submitter(*d.cfg.Key), h, d.strategy)
	ctx, unfollow := d.grants.follow(ctx, r.turn, r.submitter, r.patched)
	defer unfollow()
	ctx = model.Showing(ctx, r.showRequest)
	err := r.Work(ctx)
	cause := context.Cause(ctx)
	if halted := (*haltedError)(nil); errors.As(cause, &halted) {
		ctx = context.WithoutCancel(ctx)
		if err != nil {
			err = halted
		}
	} else if errors.Is(cause, errStopped) {
		r.frame(bus.FrameError, bus.ErrorData{Code: string(intents.Cancelled), Reason: cause.Error()})
		r.frame(bus.FrameDone, bus.DoneData{PlanID: h.PlanID, Status: string(catalog.PlanFailed)})
		r.turn.Grant = r.submitter.grantOf(r.turn)
		if err := cfg.reportUsage(ctx, r.turn, r.used); err != nil {
			cfg.Log.WarnContext(ctx, "usage of a stopped plan", slog.String("plan_id", h.PlanID), slog.String("error", err.Error()))
		}
		return
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	d.cfg.Log.WarnContext(ctx, "turn", slog.String("plan_id", h.PlanID), slog.String("error", model.Detail(err)))
	if refused, ok := errors.AsType[*IntentError](err); ok && refused.Type == "plan.claim" {
		return // another driver runs it
	}
	if err := r.kind.close(ctx, err); err != nil {
		d.cfg.Log.WarnContext(ctx, "plan.close", slog.String("plan_id", h.PlanID), slog.String("error", err.Error()))
	}
}
