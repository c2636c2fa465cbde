package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
)

// agentWatcher puts the agents of a directory in force for all tenants, at the start and
// whenever the directory changes. What is broken is said, and what was in force stays.
// One goroutine at a time uses it.
type agentWatcher struct {
	node *Node
	seen string // what stood there at the last look
	done string // that which was dealt with

	mu   sync.Mutex
	said string // for people, guarded by mu
}

// lookAgents is how often the directory is read. It must stay as it is for one such time:
// editors and git write several files for one change.
const lookAgents = 500 * time.Millisecond

// startAgentFiles puts the agents of the directory in force, and watches it.
func (n *Node) startAgentFiles(g *group) error {
	if n.agents.start(g.ctx); n.cfg.Agents != "" {
		g.run("registry", n.agents.run)
	}
	return nil
}

// start puts the directory in force before anybody asks for an agent.
func (w *agentWatcher) start(ctx context.Context) {
	if w.node.cfg.Agents == "" {
		return
	}
	w.done = w.look()
	w.put(ctx)
}

// run looks again until ctx ends, and at once when the process gets a SIGHUP.
func (w *agentWatcher) run(ctx context.Context) error {
	now := make(chan os.Signal, 1)
	signal.Notify(now, syscall.SIGHUP)
	defer signal.Stop(now)
	for {
		look, cancel := context.WithTimeout(ctx, lookAgents)
		asked := false
		select {
		case <-now:
			asked = true
		case <-look.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		now := w.look()
		settled := now == w.seen
		w.seen = now
		if asked || settled && now != w.done {
			w.done = now
			w.put(ctx)
		}
	}
}

// look says what stands in the directory, by names, sizes and times.
func (w *agentWatcher) look() string {
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(w.node.cfg.Agents), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintln(&b, name, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		return err.Error() // it is not there, or changes just now
	}
	return b.String()
}

// put puts the directory in force unless it is, and says what became of it.
//
// Crash before its order is committed: the old revision is in force, and the next start
// puts this one there. Blobs of one that is too large for an order stay, and are found again.
func (w *agentWatcher) put(ctx context.Context) {
	dir, log := w.node.cfg.Agents, w.node.cfg.Log
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if !w.node.cfg.AgentsFound {
			log.WarnContext(ctx, "the directory of agents is not there; those in force stay", slog.String("dir", dir))
			w.say("the directory is not there: make it, or correct the setting agents (its variables are P8_SCHEMA_DIR and AGENT_REGISTRY_DIR)")
		}
		return
	}
	if w.node.cfg.AgentsFound && !sameOwner(dir, w.node.cfg.Dir) {
		log.WarnContext(ctx, "agents are not read: nobody named their directory, and it does not belong to the owner of the data directory alone", slog.String("to_have_them", "writ up --agents "+dir))
		w.say("not read; to have them, type: writ up --agents " + dir)
		return
	}
	r, err := agents.ReadDir(dir, os.Getenv, w.node.cfg.AgentVariables, w.node.cfg.AgentHosts...)
	if err == nil && len(r.Files()) == 0 {
		return
	}
	if err == nil {
		err = w.push(ctx, r)
	}
	if err != nil {
		log.ErrorContext(ctx, "the agents were not put in force; those that were stay", slog.String("dir", dir), slog.String("error", err.Error()))
		w.say("not in force, see writ registry check " + dir)
		return
	}
	var names []string
	for _, a := range r.Agents {
		names = append(names, a.Name)
		if _, known := w.node.cfg.Models[a.Model]; a.Model != "" && !known {
			log.WarnContext(ctx, "an agent names a model that the configuration does not have, and uses the default one", slog.String("agent", a.Name), slog.String("model", a.Model))
		}
	}
	for _, f := range append(r.Notices, r.Ahead()...) {
		log.WarnContext(ctx, "agents", slog.String("notice", f.Error()))
	}
	w.say(strings.Join(names, ", "))
}

// sameOwner says whether a directory, to which no link leads, belongs to the owner of another one,
// and not everybody may write there.
func sameOwner(dir, as string) bool {
	info, err1 := os.Lstat(dir)
	of, err2 := os.Stat(as)
	if err1 != nil || err2 != nil || !info.IsDir() || info.Mode().Perm()&0o002 != 0 {
		return false
	}
	a, ok1 := info.Sys().(*syscall.Stat_t)
	b, ok2 := of.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && a.Uid == b.Uid
}

// push orders the revision for system, unless it is in force.
func (w *agentWatcher) push(ctx context.Context, r *agents.Revision) error {
	a := catalog.RegistryPush{Revision: 1, Digest: r.Digest()}
	if rows, _ := w.node.directory.Rows(keydir.LocalTenant); rows.Registry != nil {
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
		if err := r.Keep(func(content []byte) error { return w.node.keep(ctx, content, intents.Digest(content)) }); err != nil {
			return err
		}
	}
	if err := w.node.operator(ctx, "registry.push", a); err != nil {
		return err
	}
	w.node.cfg.Log.InfoContext(ctx, "agents in force", slog.String("dir", w.node.cfg.Agents), slog.Int64("revision", a.Revision), slog.String("digest", a.Digest))
	return nil
}

func (w *agentWatcher) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = text
}

// AgentsLine says for people which agents of the directory are in force; empty: there is
// no directory.
func (n *Node) AgentsLine() string {
	n.agents.mu.Lock()
	defer n.agents.mu.Unlock()
	if n.agents.said == "" {
		return ""
	}
	return fmt.Sprintf("agents of %s: %s", n.cfg.Agents, n.agents.said)
}
