package graphs

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"aob.dev/writ/agentic"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// process of the agentic layer.
type process struct {
	conn  bus.Conn
	stop  context.CancelFunc
	ended chan error
}

// connect waits for a busy machine: the handshake of the bus has two seconds.
func (x *run) connect(user string) bus.Conn {
	for deadline := time.Now().Add(patience); ; {
		c, err := x.server.Connect(x.Context(), user)
		if err == nil {
			return c
		}
		if time.Now().After(deadline) {
			x.Fatal(err)
		}
	}
}

func (x *run) await(c <-chan struct{}) {
	select {
	case <-c:
	case <-time.After(patience):
		x.Fatalf("graph %d, %s %d: nothing moves", x.graph.seed, x.mode.name, x.mode.pass)
	}
}

// endRouter is the death of the router: it answers nobody, and its files are let go.
func (x *run) endRouter() {
	x.bus.Close()
	x.stop()
	<-x.serves
	x.w.Must(x.journal.Close())
}

// start starts a process of the agentic layer.
func (x *run) start(user string, serve func(agentic.Config) func(context.Context, chan<- struct{}) error) {
	cfg := agentic.Config{Bus: x.connect(user), Origin: x.w.Origin, Now: x.w.Clock.Now, Log: slog.New(slog.DiscardHandler), After: x.after}
	if x.chaos != nil {
		cfg.Bus = lossy{cfg.Bus, x.chaos}
	}
	if user == natsserver.Workflow {
		cfg.Key = &x.w.Workflow
	}
	ctx, stop := context.WithCancel(x.Context())
	ready, p := make(chan struct{}), process{cfg.Bus, stop, make(chan error, 1)}
	go func() { p.ended <- serve(cfg)(ctx, ready) }()
	x.await(ready)
	x.agents = append(x.agents, p)
}

// startAgents starts what is dead of the agentic layer.
func (x *run) startAgents() {
	if len(x.agents) == 0 {
		x.start(natsserver.Task, func(c agentic.Config) func(context.Context, chan<- struct{}) error { return agentic.NewTasks(c).Serve })
	}
	x.start(natsserver.Workflow, func(c agentic.Config) func(context.Context, chan<- struct{}) error { return agentic.NewEngine(c).Serve })
}

// after does not wait: the clock is moved. Only who asks whether a process still works does.
func (x *run) after(d time.Duration) <-chan time.Time {
	if d == 3*time.Second {
		return time.After(d)
	}
	if d > 0 {
		x.w.Clock.Move(d)
	}
	out := make(chan time.Time, 1)
	out <- x.w.Clock.Now()
	return out
}

// kill ends the processes of the agentic layer but the first so many, the last one first: their
// connections are gone in the middle of whatever they do.
func (x *run) kill(but int) {
	for _, p := range slices.Backward(x.agents[but:]) {
		p.stop()
		p.conn.Close()
		<-p.ended
	}
	x.agents = x.agents[:but]
}

// lived starts what is dead, hands the run out, and waits for its end or the next death.
func (x *run) lived() (ended bool) {
	l := newLife()
	x.mortal(l)
	if !x.w.Router.Ready() && !x.recovered(l) {
		return false
	}
	x.startAgents()
	over := make(chan struct{})
	ctx, cancel := context.WithCancel(x.Context())
	go func() {
		defer close(over)
		x.dispatch(ctx)
	}()
	select {
	case <-over:
	case <-l.due:
	case <-time.After(patience):
		x.Fatalf("graph %d, %s %d: the run does not end", x.graph.seed, x.mode.name, x.mode.pass)
	}
	cancel()
	<-over
	x.mortal(nil)
	select {
	case <-l.due:
		x.die(l)
		return false
	default:
		close(l.dead) // a commit that comes late waits for nobody
	}
	x.kill(0)
	return true
}

// die ends what the mode lets die, and lets those go that waited for it.
func (x *run) die(l *life) {
	keep := 0
	if !x.mode.router && x.random.IntN(2) == 0 {
		keep = 1 // the tasks go on
	}
	x.kill(keep)
	if !x.mode.router {
		close(l.dead)
		return
	}
	x.bus.Close()
	close(l.dead)
	x.stop()
	<-x.serves
	x.reopen()
}

// reopen closes the files of a dead router and reads them again.
func (x *run) reopen() {
	x.w.Must(x.journal.Close())
	next, before := x.w.Dir.Next(), ""
	if _, d, err := x.w.Dir.Digest(); err == nil {
		before = d
	}
	x.w = x.w.ReopenOn(x.open)
	x.plan = x.plan.On(x.w)
	if n, after, err := x.w.Dir.Digest(); err != nil || n == next && after != before {
		x.Errorf("graph %d: another state after a death: %v", x.graph.seed, err)
	}
}

func (x *run) observe(storage.Entry) {
	if x.chaos.comes(clockJumps, 2) {
		x.w.Clock.Move(time.Duration(x.chaos.number(7200)-3600) * time.Second)
	}
	select {
	case x.moved <- struct{}{}:
	default:
	}
}

// mortal returns the life that ends at the next deadly commit; nil: none.
func (x *run) mortal(l *life) {
	x.points.mu.Lock()
	defer x.points.mu.Unlock()
	x.points.life = l
}

// recovered starts the router on what its predecessor left, unless it dies meanwhile. An operator
// reports whether a call arrived.
func (x *run) recovered(l *life) bool {
	started, ctx := make(chan error, 1), x.lasting()
	go func() {
		err := x.w.Router.Start(ctx)
		if err == nil {
			err = x.w.Router.Recover(ctx)
		}
		started <- err
	}()
	var err error
	select {
	case err = <-started:
	case <-l.due:
	case <-time.After(patience):
		x.Fatal("the router does not start")
	}
	select {
	case <-l.due:
		close(l.dead)
		x.leave()
		<-started
		x.reopen()
		return false
	default:
	}
	x.w.Must(err)
	x.mortal(nil)
	x.resolve()
	x.mortal(l)
	x.serve()
	return true
}

// resolve resolves each call with an unknown outcome by whether it arrived.
func (x *run) resolve() {
	resolved := map[string]string{}
	for rec, err := range x.w.Journal.Scan(x.Context(), x.read) {
		x.w.Must(err)
		x.read = rec.Position + 1
		switch rec.Kind {
		case storage.KindIntent:
			o, err := state.ReadIntent(rec)
			x.w.Must(err)
			x.intents[rec.Position] = o
		case storage.KindOutcome:
			out, of, err := state.OutcomeOf(rec)
			x.w.Must(err)
			if out.Status == intents.StatusIndetermined {
				id := x.intents[of].Decision.IntentID
				if resolved[id] = string(intents.Failed); x.arrived(id) {
					resolved[id], x.unknown[id] = string(intents.Done), true
				}
			}
		default:
		}
	}
	for id, status := range resolved {
		x.w.Want(x.w.Admin("intent.resolve", catalog.IntentResolve{IntentID: id, Status: status, Reason: "seen at the other end"}), intents.OK)
	}
}
