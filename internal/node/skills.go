package node

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/ratelimit"
)

// openSkills registers the skill servers, which are dialled when they are first asked. A
// faulty configuration is an error; a server that does not answer is not.
func (n *Node) openSkills(ctx context.Context) error {
	n.registry = skills.NewRegistry(ctx, n.cfg.Now)
	n.skills = &skillWatcher{node: n, sources: map[string]mcp.Source{}, logged: map[string]string{}, agents: make(chan struct{}, 1)}
	n.servers = sandbox.NewServers()
	for _, name := range slices.Sorted(maps.Keys(n.cfg.Builtin)) {
		if err := n.addSkills(name, mcp.Builtin(name, n.cfg.Builtin[name])); err != nil {
			return err
		}
	}
	for _, source := range n.cfg.SkillServers {
		if err := n.addSkills(source.Name, source); err != nil {
			return err
		}
	}
	taken := map[string]bool{}
	for i, text := range n.cfg.Skills {
		source, err := mcp.ParseSource(text)
		if err != nil {
			return err
		}
		if taken[source.Server()] {
			return fmt.Errorf("skill server %s is twice in --skills: remove one, or give each a name with name=… --", source.Title())
		}
		taken[source.Server()] = true
		name := source.Name
		if name == "" {
			name = fmt.Sprintf("skills-%d", i+1)
		}
		if err := n.addSkills(name, source); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) addSkills(name string, source mcp.Source) error {
	n.skills.sources[name] = source
	terms := skills.Terms{Tenants: source.Tenants}
	if source.RPM > 0 {
		terms.Calls = ratelimit.New(source.RPM, time.Minute, ratelimit.Of(1), n.cfg.Now)
	}
	return n.registry.Add(name, terms, n.dialer(source))
}

func (n *Node) dialer(source mcp.Source) func(context.Context) (skills.Server, error) {
	isolation := &mcp.Isolation{
		Servers: n.servers, Homes: filepath.Join(n.cfg.Dir, "servers"), // a directory in it for each
		Hidden: append([]string{n.cfg.Dir}, n.cfg.Secrets...),
	}
	return func(ctx context.Context) (skills.Server, error) {
		c, err := mcp.Dial(ctx, source, mcp.Options{
			Timeout: cmp.Or(source.Timeout, n.cfg.SkillTimeout), Retries: n.cfg.SkillRetries, Log: n.cfg.Log, Isolation: isolation,
		})
		if err != nil {
			return nil, err // not c: as a Server it would not be nil
		}
		return c, nil
	}
}

// agentDialer connects to remote agents, which the registry names and not the operator: in
// the public network, and where agent_hosts says. An endpoint is a URL and never a command.
func (n *Node) agentDialer() func(context.Context, string) (skills.RemoteAgent, error) {
	door := egress.Transport(n.cfg.AgentHosts...)
	return func(ctx context.Context, endpoint string) (skills.RemoteAgent, error) {
		source, err := new(mcp.Settings).Source(endpoint, "")
		if err != nil {
			return nil, &mcp.Error{Kind: mcp.ErrRefused, Undelivered: true, Err: err}
		}
		c, err := mcp.Dial(ctx, source, mcp.Options{
			Log: n.cfg.Log, MaxBytes: skills.MaxAnswer, Timeout: n.cfg.SkillTimeout, Retries: n.cfg.SkillRetries, RoundTripper: door,
		})
		if err != nil {
			return nil, err // not c: as a RemoteAgent it would not be nil
		}
		return c, nil
	}
}

// writeVersions stores the declared versions of skills, and keeps the approved ones beside
// them, so that people can compare them. A crash leaves the old file. If it cannot be
// written, that is logged and nothing else fails.
func (w *skillWatcher) writeVersions(ctx context.Context, found []skills.Skill) {
	dir, log := w.node.cfg.Dir, w.node.cfg.Log
	list, seen := []datadir.SkillVersion{}, map[string]bool{}
	for _, s := range found {
		if d := s.Digest(); s.Err == nil && d != "" && !seen[d] {
			seen[d] = true
			list = append(list, datadir.SkillVersion{
				Name: s.ID(), Server: w.title(s.Server), Tenants: w.sources[s.Server].Tenants, Digest: d, Effect: w.effectOf(s), Claim: claimOf(s), Destructive: w.destructive(s), Declared: true,
				Description: s.Description, InputSchema: s.InputSchema, OutputSchema: s.OutputSchema, Annotations: s.Annotations,
			})
		}
	}
	before, err := datadir.ReadSkillVersions(dir)
	if err != nil {
		log.WarnContext(ctx, "the stored versions of skills cannot be read", slog.String("error", err.Error()))
	}
	approved, kept := w.approvedDigests(), 0
	for _, s := range before {
		if (approved[s.Digest] || approved == nil && kept < maxSeen) && !seen[s.Digest] {
			s.Declared = false
			list = append(list, s)
			kept++
		}
	}
	if reflect.DeepEqual(list, w.noted) {
		return
	}
	if err := datadir.WriteSkillVersions(dir, list); err != nil {
		log.WarnContext(ctx, "the declared versions of skills were not stored", slog.String("error", err.Error()))
		return
	}
	w.noted = list
}

// maxSeen versions that are not declared any more are kept, the newest, where it is not known
// which are approved.
const maxSeen = 100

// approvedDigests of all tenants; nil: they are not known.
func (w *skillWatcher) approvedDigests() map[string]bool {
	if w.node.directory == nil {
		return nil
	}
	out := map[string]bool{}
	v := w.node.directory.View()
	for _, tenant := range w.node.directory.Tenants() {
		for _, pin := range v.Pins(tenant) {
			out[pin.Digest] = true
		}
	}
	return out
}
