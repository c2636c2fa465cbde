package node

import (
	"context"

	"aob.dev/writ/agentic"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
)

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
		c := agentic.Config{Bus: conn, Origin: n.Origin(), Model: n.cfg.Model, Models: n.cfg.Models, Now: n.cfg.Now, Log: n.cfg.Log}
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
