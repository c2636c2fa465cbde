package node

import (
	"context"
	"log/slog"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state/agents"
)

// startAgentFiles puts the agents of the directory in force, and watches it.
func (n *Node) startAgentFiles(g *group) error {
	if n.agents.Start(g.ctx); n.cfg.Agents != "" {
		g.run("registry", n.agents.Run)
	}
	return nil
}

// newAgents makes the watcher of the directory of agents.
func (n *Node) newAgents() *agents.Watcher {
	w := &agents.Watcher{
		Dir: n.cfg.Agents, Variables: n.cfg.AgentVariables, Hosts: n.cfg.AgentHosts, Push: n.pushAgents, Log: n.cfg.Log,
		Known: func(model string) bool { _, ok := n.cfg.Models[model]; return ok },
	}
	if n.cfg.AgentsFound {
		w.Owner = n.cfg.Dir
	}
	return w
}

// pushAgents submits the revision for system, unless it is in force.
func (n *Node) pushAgents(ctx context.Context, r *agents.Revision) error {
	a := catalog.RegistryPush{Revision: 1, Digest: r.Digest()}
	if rows, _ := n.directory.Rows(keydir.LocalTenant); rows.Registry != nil {
		if rows.Registry.Digest == a.Digest {
			return nil
		}
		a.Revision += rows.Registry.Revision
	}
	var err error
	if a.Bundle, err = r.Pack(); err != nil {
		return err
	}
	if a.Bundle == "" {
		if err := r.Keep(func(content []byte) error { return n.keep(ctx, content, intents.Digest(content)) }); err != nil {
			return err
		}
	}
	if err := n.operator(ctx, "registry.push", a); err != nil {
		return err
	}
	n.skills.NewAgents()
	n.cfg.Log.InfoContext(ctx, "agents in force", slog.String("dir", n.cfg.Agents), slog.Int64("revision", a.Revision), slog.String("digest", a.Digest))
	return nil
}

// AgentsLine lists, for people, the agents of the directory that are in force; empty: there is no
// directory.
func (n *Node) AgentsLine() string { return n.agents.String() }
