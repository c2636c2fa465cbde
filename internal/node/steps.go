package node

import (
	"context"

	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/cell"
	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/skills"
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
		{router, n.loadPolicy},
		{router, n.openCatalog},
		{n.carriesOut(skills.Name), n.openSkills},
		{n.carriesOut(python.Name), n.openSandbox},
		{n.needsDocuments(), n.openDocuments},
		{recorder || n.carriesOut(knowledge.Name, memory.Name), n.checkEmbedder},
		{n.needsBlobs(), n.openBlobs},
		{!n.standalone(), n.openKeys},
		{!n.standalone(), n.joinCluster},
		{n.standalone(), n.openJournal},
		{n.standalone(), n.checkJournal},
		{n.standalone(), n.begin},
		{!n.standalone() && n.follows(), n.openStream},
		{n.standalone(), n.openLedger},
		{n.standalone(), n.checkPromise},
		{n.standalone(), n.checkSample},
		{router, n.openHoldings},
		{n.standalone(), n.openBus},
		{router && !n.standalone(), n.openIndex},
		{recorder, n.openRecorder},
		{n.has(cell.RoleMonitor), n.openMonitor},
		{router, n.openRouter},
		{n.has(natsserver.Gateway), n.openGateway},
	}...)
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
		{n.carriesOut(), n.startExecutors},
		{router, n.startRouter},
		{n.standalone(), func(g *group) error { return n.firstKey(g.ctx) }},
		{n.carriesOut(skills.Name), n.startSkills},
		{n.standalone(), n.startAgentFiles},
		{true, n.startAgents},
		{router && n.policyPlace() != "", runs("policies", n.followPolicy)},
		{n.standalone(), runs("external executors", n.followExternal)},
		{n.has(natsserver.Gateway), n.startGateway},
		{true, n.serveHTTP},
	}...)
}
