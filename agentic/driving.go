package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/tracing"
)

// maxDrives is how many plans one process of a role drives at once. It refuses further
// ones, so that nobody waits in vain.
const maxDrives = 1024

// driving takes the hand-outs of one process and has each driven.
type driving struct {
	cfg    Config
	role   string
	work   func(context.Context, bus.HandOut)
	grants *renewals
	drives sync.WaitGroup // that run
	room   chan struct{}  // one place per drive
}

func newDriving(cfg Config, role string) *driving {
	return &driving{cfg: cfg, role: role, grants: newRenewals(), room: make(chan struct{}, maxDrives)}
}

// serve takes hand-outs until ctx ends, then waits for the drives. They use ctx too: they
// stop at their next order, and the plans go on after a restart.
func (d *driving) serve(ctx context.Context, s bus.Service, ready chan<- struct{}) error {
	defer d.drives.Wait()
	s.Name, s.Version, s.Queue, s.Workers = bus.ServiceName(d.role), "1.0.0", d.role, workers
	if s.Endpoints == nil {
		s.Endpoints = make(map[string]bus.Handler)
	}
	s.Endpoints[bus.Agent(d.role)] = answer(d.cfg.Log, func(asked context.Context, h bus.HandOut) bus.HandOutReply {
		return d.accept(tracing.With(ctx, asked), h)
	})
	s.Endpoints[bus.Grant(d.role, d.cfg.Bus.Instance())] = answer(d.cfg.Log, d.grants.take)
	s.Each = map[string]bus.Handler{bus.Driving(d.role): d.driving}
	return d.cfg.Bus.Serve(ctx, s, ready)
}

// driving says who drives a plan, if it is this process.
func (d *driving) driving(_ context.Context, data []byte) []byte {
	var asked bus.DrivingRequest
	if json.Unmarshal(data, &asked) != nil {
		return nil
	}
	driver, ok := d.grants.driverOf(asked.PlanID)
	if !ok {
		return nil
	}
	reply, _ := json.Marshal(bus.DrivingReply{Driver: driver, Instance: d.cfg.Bus.Instance()}) // plain data
	return reply
}

// accept takes a plan, if there is room, and begins to drive it.
func (d *driving) accept(ctx context.Context, h bus.HandOut) bus.HandOutReply {
	select {
	case d.room <- struct{}{}:
	default:
		return bus.HandOutReply{Code: string(intents.Overloaded), Reason: "the " + d.role + " takes no more plans"}
	}
	d.drives.Go(func() {
		defer func() { <-d.room }()
		ctx, span := tracing.StartIn(logging.By(logging.In(ctx, h.TraceID), d.role, "turn"), h.TraceID, "turn", tracing.Plan.String(h.PlanID))
		defer span.End()
		d.work(ctx, h)
		d.cfg.Log.InfoContext(ctx, "agent.turn", slog.String("plan_id", h.PlanID))
	})
	return bus.HandOutReply{Accepted: true, Instance: d.cfg.Bus.Instance()}
}

// begin is the drive of a plan that was handed out. It follows fresh grants until stop is
// called.
func (d *driving) begin(ctx context.Context, h bus.HandOut) (_ *drive, stop func()) {
	cfg := d.cfg
	cfg.Log = logging.Of(ctx, cfg.Log)
	out := &drive{
		cfg: cfg, driver: h.Driver, epoch: h.Epoch + 1, sealer: d.cfg.sealer(*d.cfg.Key), held: make(map[int]runReply),
		turn: Turn{Tenant: h.Tenant, UserID: h.UserID, SessionID: h.SessionID, TurnID: h.TurnID, PlanID: h.PlanID, TraceID: h.TraceID, Driver: h.Driver, Grant: h.Grant},
	}
	out.patched = make(chan struct{}, 1)
	return out, d.grants.follow(out.turn, out.sealer, out.patched)
}

// mostReopened is how often a plan is claimed anew because a process that worked for it was gone.
const mostReopened = 3

// reopening drives a plan. Where a process that worked for it is gone, the plan is claimed anew: that ends the
// tasks that live, and the steps go on, with new tasks that are told the calls before.
func (d *drive) reopening(ctx context.Context, work func(context.Context) error) error {
	for again := 0; ; again++ {
		err := work(ctx)
		if !errors.Is(err, errGone) || again == mostReopened || ctx.Err() != nil {
			return err
		}
		d.cfg.Log.WarnContext(ctx, "go on without a process that is gone", slog.String("plan_id", d.turn.PlanID))
		d.epoch++
		d.plan, d.at, d.next = catalog.PlanView{}, 0, nil
		clear(d.held)
	}
}
