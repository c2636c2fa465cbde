package node

import (
	"aob.dev/writ/agentic"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
)

// startAgents serves the roles of the agentic layer, each with its own
// connection and its own key only.
func (n *Node) startAgents(g *group) error {
	config := func(user string, role intents.Role) (agentic.Config, error) {
		conn, err := n.connect(g.ctx, user)
		c := agentic.Config{Bus: conn, Origin: n.Origin(), Model: n.cfg.Model, Now: n.cfg.Now, Log: n.cfg.Log}
		if role != intents.RoleTask { // whose keys are made by the step
			key := n.keys.signer(role)
			c.Key = &key
		}
		return c, err
	}
	task, err := config(natsserver.Task, intents.RoleTask)
	if err != nil {
		return err
	}
	planner, err := config(natsserver.Planner, intents.RolePlanner)
	if err != nil {
		return err
	}
	manager, err := config(natsserver.Manager, intents.RoleManager)
	if err != nil {
		return err
	}
	if err := g.serve("task", agentic.NewTasks(task).Serve); err != nil {
		return err
	}
	if err := g.serve("planner", agentic.NewPlanner(planner).Serve); err != nil {
		return err
	}
	return g.serve("manager", agentic.NewManager(manager).Serve)
}

// Bus is the CORE connection, for commands that look at services.
func (n *Node) Bus() bus.Conn { return n.conns[natsserver.Router] }
