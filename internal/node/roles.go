package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/executors/artifacts"
	"aob.dev/writ/executors/files"
	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus/natsserver"
)

// Cluster is a process that has some of the roles, on a NATS cluster.
type Cluster struct {
	Roles              []string // see Roles
	Bus                BusAt
	Keys               []string // directories of the roles' keys, which writ cell create made
	Routers, Recorders []string // URLs of other processes' HTTP

	genesis string // begins the log where it has not begun: of writ cell create alone
}

// roleMonitor is the one role that is not on the bus.
const roleMonitor = "monitor"

// executorRole begins the role of an executor.
const executorRole = "executor:"

// Roles are all that a process may have.
func Roles() []string {
	out := []string{natsserver.Gateway, natsserver.Router, natsserver.Recorder, roleMonitor, natsserver.Manager, natsserver.Planner, natsserver.Task, natsserver.Workflow}
	var own []string
	for name := range executorTypes() {
		own = append(own, executorRole+name)
	}
	slices.Sort(own)
	return append(out, own...)
}

// CheckRoles refuses words that are no roles.
func CheckRoles(roles []string) error {
	for i, r := range roles {
		if !slices.Contains(Roles(), r) {
			return fmt.Errorf("%q is no role: roles are %s", r, strings.Join(Roles(), ", "))
		}
		if slices.Contains(roles[:i], r) {
			return fmt.Errorf("role %s is named twice", r)
		}
	}
	return nil
}

// alone says that everything is in this process.
func (n *Node) alone() bool { return n.cfg.Cluster == nil }

// has says whether the process has one of some roles.
func (n *Node) has(roles ...string) bool {
	return n.alone() || slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(n.cfg.Cluster.Roles, r) })
}

// carriesOut says whether the process has one of some executors; of none: any.
func (n *Node) carriesOut(names ...string) bool {
	if len(names) == 0 {
		return n.alone() || slices.ContainsFunc(n.cfg.Cluster.Roles, func(r string) bool { return strings.HasPrefix(r, executorRole) })
	}
	return slices.ContainsFunc(names, func(name string) bool { return n.has(executorRole + name) })
}

// follows says whether the process follows the journal.
func (n *Node) follows() bool { return n.has(natsserver.Router, natsserver.Recorder) }

// needsDocuments says whether the process opens the documents.
func (n *Node) needsDocuments() bool {
	return n.follows() || n.has(roleMonitor) || n.carriesOut("knowledge", "logs", "memory", "plans", "sessions", "skills")
}

// needsBlobs says whether the process opens the blobs.
func (n *Node) needsBlobs() bool {
	return n.follows() || n.has(natsserver.Gateway) || n.carriesOut(artifacts.Name, files.Name, knowledge.Name, memory.Name, python.Name, skills.Name)
}

// signers are the roles that the process signs in.
func (n *Node) signers() (out []intents.Role) {
	for role, signs := range map[string]intents.Role{
		natsserver.Gateway: intents.RoleGateway, natsserver.Router: intents.RoleRouter, natsserver.Recorder: intents.RoleLedger,
		natsserver.Manager: intents.RoleManager, natsserver.Planner: intents.RolePlanner, natsserver.Workflow: intents.RoleWorkflow,
	} {
		if n.has(role) {
			out = append(out, signs)
		}
	}
	if n.cfg.Cluster.genesis != "" { // it has the first API key made
		out = append(out, intents.RoleOperator)
	}
	return out
}

// step is a part of a process, where of says that the process has it.
type step[T any] struct {
	of bool
	do func(T) error
}

// take the steps that a process has, up to the first that fails.
func take[T any](with T, steps ...step[T]) error {
	for _, s := range steps {
		if !s.of {
			continue
		}
		if err := s.do(with); err != nil {
			return err
		}
	}
	return nil
}

// openSteps open the parts of a process. Faults of the configuration are found before the
// first record is written.
func (n *Node) openSteps(ctx context.Context) error {
	router, recorder := n.has(natsserver.Router), n.has(natsserver.Recorder)
	return take(ctx, []step[context.Context]{
		{router, n.loadPolicy},
		{router, n.openCatalog},
		{n.carriesOut(skills.Name), n.openSkills},
		{n.carriesOut(python.Name), n.openSandbox},
		{n.needsDocuments(), n.openDocuments},
		{recorder || n.carriesOut(knowledge.Name, memory.Name), n.checkEmbedder},
		{n.needsBlobs(), n.openBlobs},
		{!n.alone(), n.openKeys},
		{!n.alone(), n.joinCluster},
		{n.alone(), n.openJournal},
		{n.alone(), n.checkJournal},
		{n.alone(), n.begin},
		{!n.alone() && n.follows(), n.openStream},
		{n.alone(), n.openLedger},
		{n.alone(), n.checkPromise},
		{n.alone(), n.checkSample},
		{router, n.openHoldings},
		{n.alone(), n.openBus},
		{router && !n.alone(), n.openIndex},
		{recorder, n.openRecorder},
		{n.has(roleMonitor), n.openMonitor},
		{router, n.openRouter},
		{n.has(natsserver.Gateway), n.openGateway},
	}...)
}

// startSteps bring the services up, each listening before what depends on it. They stop in
// the other order.
func (n *Node) startSteps(g *group) error {
	router, recorder := n.has(natsserver.Router), n.has(natsserver.Recorder)
	return take(g, []step[*group]{
		{true, n.startHealth},
		{n.alone(), n.unblocked},
		{n.needsDocuments(), n.startDocuments},
		{recorder && n.alone(), n.startRecording},
		{recorder && !n.alone(), n.startElection},
		{router && !n.alone(), n.startIndex},
		{router, n.startHoldings},
		{!n.alone() && n.follows(), n.startSnapshots},
		{n.has(roleMonitor), n.startMonitor},
		{n.carriesOut(), n.startExecutors},
		{router, n.startRouter},
		{n.alone(), n.startOperator},
		{n.carriesOut(skills.Name), n.startSkills},
		{n.alone(), n.startAgentFiles},
		{true, n.startAgents},
		{router, n.startPolicy},
		{n.alone(), n.startExternal},
		{n.has(natsserver.Gateway), n.startGateway},
		{true, n.serveHTTP},
	}...)
}
