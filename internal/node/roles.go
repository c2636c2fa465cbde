package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/agentic"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/cell"
	"aob.dev/writ/executors/artifacts"
	"aob.dev/writ/executors/files"
	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Cluster is a process that has some of the roles, on a NATS cluster.
type Cluster struct {
	Roles              []string // see Roles
	Bus                cell.Bus
	Keys               []string // directories of the roles' keys, which writ admin cell create made
	Routers, Recorders []string // URLs of other processes' HTTP

	operates bool   // it signs as the operator: for the moment of a command
	genesis  string // begins the log where it has not begun: of writ admin cell begin alone
}

// executorRole begins the role of an executor.
const executorRole = "executor:"

// Roles are all that a process may have.
func Roles() []string {
	out := []string{natsserver.Gateway, natsserver.Router, natsserver.Recorder, cell.RoleMonitor, natsserver.Manager, natsserver.Planner, natsserver.Task, natsserver.Workflow}
	var own []string
	for name := range catalog.Executors() {
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

// standalone reports whether everything is in this process.
func (n *Node) standalone() bool { return n.cfg.Cluster == nil }

// has reports whether the process has one of some roles.
func (n *Node) has(roles ...string) bool {
	return n.standalone() || slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(n.cfg.Cluster.Roles, r) })
}

// carriesOut reports whether the process has one of some executors; of none: any.
func (n *Node) carriesOut(names ...string) bool {
	if len(names) == 0 {
		return n.standalone() || slices.ContainsFunc(n.cfg.Cluster.Roles, func(r string) bool { return strings.HasPrefix(r, executorRole) })
	}
	return slices.ContainsFunc(names, func(name string) bool { return n.has(executorRole + name) })
}

// follows reports whether the process follows the journal.
func (n *Node) follows() bool { return n.has(natsserver.Router, natsserver.Recorder) }

// needsDocuments reports whether the process opens the documents.
func (n *Node) needsDocuments() bool {
	return n.follows() || n.has(cell.RoleMonitor) || n.carriesOut("knowledge", "logs", "memory", "plans", "sessions", "skills")
}

// needsBlobs reports whether the process opens the blobs.
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
	if n.cfg.Cluster.operates {
		out = append(out, intents.RoleOperator)
	}
	return out
}

// agentRole is a role of the agentic layer.
type agentRole struct {
	user  string       // of the bus, and its name
	signs intents.Role // empty: each step makes a key of its own
	serve func(agentic.Config) func(context.Context, chan<- struct{}) error
}

// startAgents serves the roles of the agentic layer that the process has. Each has only its
// own connection and its own key.
func (n *Node) startAgents(g *group) error {
	for _, r := range []agentRole{
		{natsserver.Task, "", func(c agentic.Config) func(context.Context, chan<- struct{}) error {
			c.CountAsk, c.Figure = n.asks.Count, n.asks.Figure
			return agentic.NewTasks(c).Serve
		}},
		{natsserver.Planner, intents.RolePlanner, func(c agentic.Config) func(context.Context, chan<- struct{}) error {
			return agentic.NewPlanner(c).Serve
		}},
		{natsserver.Workflow, intents.RoleWorkflow, func(c agentic.Config) func(context.Context, chan<- struct{}) error {
			return agentic.NewEngine(c).Serve
		}},
		{natsserver.Manager, intents.RoleManager, func(c agentic.Config) func(context.Context, chan<- struct{}) error {
			c.Figure = n.asks.Figure
			return agentic.NewManager(c).Serve
		}},
	} {
		if !n.has(r.user) {
			continue
		}
		conn, err := n.connect(g.ctx, r.user)
		if err != nil {
			return err
		}
		c := agentic.Config{Bus: conn, Origin: n.Origin(), Model: n.cfg.Model, Models: n.cfg.Models, StepTime: n.cfg.StepTime, Now: n.cfg.Now, Log: n.cfg.Log}
		if r.signs != "" {
			key := n.keys.Signer(r.signs)
			c.Key = &key
		}
		if err := g.serve(r.user, r.serve(c)); err != nil {
			return err
		}
	}
	return nil
}
