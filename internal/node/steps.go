package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/cell"
	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/state/agents"
)

// step is a part of a process; of reports whether the process has it.
type step[T any] struct {
	included bool
	do       func(T) error
}

// inOrder does the steps that a process has, up to the first that fails.
func inOrder[T any](with T, steps ...step[T]) error {
	for _, s := range steps {
		if !s.included {
			continue
		}
		if err := s.do(with); err != nil {
			return err
		}
	}
	return nil
}

// runs is a step that starts a service.
func runs(name string, service func(context.Context) error) func(*group) error {
	return func(g *group) error {
		g.run(name, service)
		return nil
	}
}

// openSteps open the parts of a process. Faults of the configuration are found before the
// first record is written.
func (n *Node) openSteps(ctx context.Context) error {
	router, recorder := n.has(natsserver.Router), n.has(natsserver.Recorder)
	return inOrder(ctx, []step[context.Context]{
		{router, n.openCatalog},
		{router, n.prepare},
		{router, n.loadPolicy},
		{n.carriesOut(skills.Name), n.openSkills},
		{n.carriesOut(python.Name), n.openSandbox},
		{n.needsDocuments(), n.openDocuments},
		{recorder || n.carriesOut(knowledge.Name, memory.Name), n.checkEmbedder},
		{n.needsBlobs(), n.openBlobs},
		{!n.standalone(), n.openKeys},
		{!n.standalone(), n.joinCluster},
		{n.standalone(), n.makeKeys},
		{n.standalone(), n.openJournal},
		{n.standalone(), n.checkJournal},
		{n.standalone(), n.begin},
		{!n.standalone() && n.follows(), n.openStream},
		{n.standalone(), n.openLedger},
		{n.standalone(), n.checkPromise},
		{n.standalone(), n.checkSample},
		{n.carriesOut(skills.Name), n.openConnections},
		{router, n.openHoldings},
		{n.standalone(), n.openBus},
		{router && !n.standalone(), n.openIndex},
		{recorder, n.openRecorder},
		{router || n.has(cell.RoleMonitor), n.openRecent},
		{n.has(cell.RoleMonitor), n.openMonitor},
		{router, n.openRouter},
		{n.has(natsserver.Gateway), n.openGateway},
	}...)
}

// prepare begins what takes a tenth of a second, is made once by a process and is needed by later
// steps, so that it is made beside the steps before those.
func (n *Node) prepare(context.Context) error {
	go func() {
		_ = n.catalog.Digest()
		_ = agents.Builtins()
	}()
	return nil
}

// startSteps bring the services up, each listening before what depends on it. They stop in reverse
// order.
func (n *Node) startSteps(g *group) error {
	router, recorder := n.has(natsserver.Router), n.has(natsserver.Recorder)
	return inOrder(g, []step[*group]{
		{true, n.startHealth},
		{n.standalone(), n.unblocked},
		{n.remote != nil, runs("documents", n.migrateDocuments)},
		{recorder && n.standalone(), n.startRecording},
		{recorder && !n.standalone(), n.startElection},
		{router && !n.standalone(), n.startIndex},
		{router, runs("holdings", n.holdings.Run)},
		{!n.standalone() && n.follows(), runs("snapshots", n.followSnapshots)},
		{n.has(cell.RoleMonitor), runs("monitor", n.monitor.Run)},
		{router, runs("figures", n.recent.Run)},
		{n.carriesOut(), n.startExecutors},
		{router, n.startRouter},
		{n.standalone(), func(g *group) error { return n.firstKey(g.ctx) }},
		{n.standalone(), func(g *group) error { return n.onePerson(g.ctx) }},
		{n.carriesOut(skills.Name), n.startSkills},
		{n.standalone(), n.startAgentFiles},
		{true, n.startAgents},
		{router && n.policyPlace() != "", runs("policies", n.followPolicy)},
		{n.standalone(), runs("external executors", n.followExternal)},
		{n.has(natsserver.Gateway), n.startGateway},
		{true, n.serveHTTP},
	}...)
}

// group owns the goroutines of a node. Services stop in the reverse order of their start,
// so each stops before the services that it depends on.
type group struct {
	ctx    context.Context // ends when the node does; services have contexts of their own
	failed chan error      // the error of the first service that ended by itself
	leave  func()          // ends the context of their work (clock.Lasting)

	mu       sync.Mutex // guards the rest
	services []service
}

// service is one that runs.
type service struct {
	cancel func()
	done   chan error // gets its error
}

func newGroup(ctx context.Context) *group {
	end, leave := context.WithCancel(context.Background())
	return &group{ctx: clock.WithEnd(ctx, end), failed: make(chan error, 1), leave: leave}
}

// run starts a service that runs until its context ends.
func (g *group) run(name string, fn func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.ctx))
	done := make(chan error, 1)
	go func() {
		err := fn(ctx)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		if ctx.Err() == nil { // it ended by itself
			if err == nil {
				err = fmt.Errorf("%s ended", name)
			}
			select {
			case g.failed <- err:
				err = nil // reported once
			default:
			}
		}
		done <- err
	}()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.services = append(g.services, service{cancel, done})
}

// serve starts a bus service and waits until it listens.
func (g *group) serve(name string, fn func(context.Context, chan<- struct{}) error) error {
	ready := make(chan struct{})
	g.run(name, func(ctx context.Context) error { return fn(ctx, ready) })
	select {
	case <-ready:
		return nil
	case err := <-g.failed:
		return err
	case <-g.ctx.Done():
		return g.ctx.Err()
	}
}

// answerGrace is how long running requests may take to end by themselves; then their contexts end
// with clock.ErrStopping, so that each can still answer. httpGrace is how long all of that may
// take.
const (
	answerGrace = 2 * time.Second
	httpGrace   = 3 * time.Second
)

// http serves HTTP.
func (g *group) http(name string, s *http.Server, l net.Listener) {
	base, end := context.WithCancelCause(clock.Lasting(g.ctx))
	s.BaseContext = func(net.Listener) context.Context { return base }
	g.run(name, func(ctx context.Context) error {
		stopped := make(chan error, 1)
		go func() {
			<-ctx.Done()
			defer end(clock.ErrStopping) // of connections that Shutdown does not wait for
			late := time.AfterFunc(answerGrace, func() { end(clock.ErrStopping) })
			defer late.Stop()
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpGrace)
			defer cancel()
			err := s.Shutdown(grace)
			if errors.Is(err, context.DeadlineExceeded) {
				err = s.Close() // clients that do not read, or answers that come too late
			}
			stopped <- err
		}()
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return <-stopped
	})
}

// workGrace is how long running work, such as a model's answer or a skill call, may continue when a
// node ends. Then it is left for recovery, as after a crash.
const workGrace = 5 * time.Second

// stop ends all services, the last started first.
func (g *group) stop() error {
	g.mu.Lock()
	services := g.services
	g.services = nil
	g.mu.Unlock()
	slices.Reverse(services)
	late := time.AfterFunc(workGrace, func() {
		for _, s := range services { // first: callers waiting for abandoned work must not take it for a failure
			s.cancel()
		}
		g.leave()
	})
	defer g.leave()
	defer late.Stop()
	var errs []error
	for _, s := range services {
		s.cancel()
		if err := <-s.done; err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
