package node

import (
	"aob.dev/writ/agentic"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus/natsserver"
)

// startAgents serves the roles of the agentic layer that the process has. Each has only its
// own connection and its own key.
func (n *Node) startAgents(g *group) error {
	return take(g, []step[*group]{
		{n.has(natsserver.Task), n.startTask},
		{n.has(natsserver.Planner), n.startPlanner},
		{n.has(natsserver.Workflow), n.startWorkflow},
		{n.has(natsserver.Manager), n.startManager},
	}...)
}

// agentConfig of a role. A task has no key of the cell: each step makes its own.
func (n *Node) agentConfig(g *group, user string, role intents.Role) (agentic.Config, error) {
	conn, err := n.connect(g.ctx, user)
	c := agentic.Config{Bus: conn, Origin: n.Origin(), Model: n.cfg.Model, Models: n.cfg.Models, Now: n.cfg.Now, Log: n.cfg.Log}
	if role != intents.RoleTask {
		key := n.keys.signer(role)
		c.Key = &key
	}
	return c, err
}

func (n *Node) startTask(g *group) error {
	c, err := n.agentConfig(g, natsserver.Task, intents.RoleTask)
	if err != nil {
		return err
	}
	c.Asked, c.Figure = n.asks.Count, n.asks.Figure
	return g.serve("task", agentic.NewTasks(c).Serve)
}

func (n *Node) startPlanner(g *group) error {
	c, err := n.agentConfig(g, natsserver.Planner, intents.RolePlanner)
	if err != nil {
		return err
	}
	return g.serve("planner", agentic.NewPlanner(c).Serve)
}

func (n *Node) startWorkflow(g *group) error {
	c, err := n.agentConfig(g, natsserver.Workflow, intents.RoleWorkflow)
	if err != nil {
		return err
	}
	return g.serve("workflow engine", agentic.NewEngine(c).Serve)
}

func (n *Node) startManager(g *group) error {
	c, err := n.agentConfig(g, natsserver.Manager, intents.RoleManager)
	if err != nil {
		return err
	}
	c.Figure = n.asks.Figure
	return g.serve("manager", agentic.NewManager(c).Serve)
}
