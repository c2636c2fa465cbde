package node

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/oauth"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/internal/sealed"
	"aob.dev/writ/router/breakers"
)

// openSkills registers the skill servers, which are dialled on first use. A
// faulty configuration is an error; a server that does not answer is not.
func (n *Node) openSkills(ctx context.Context) error {
	n.registry = skills.NewRegistry(ctx, n.cfg.Now)
	n.skills = approval.New(n.registry, n.cfg.Dir, n.cfg.Log)
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

// startSkills asks the skill servers once, and then again and again.
func (n *Node) startSkills(g *group) error {
	n.skills.State, n.skills.Unmatched = n.directory, n.unmatched
	if n.standalone() {
		n.skills.Approve = func(ctx context.Context, a catalog.SkillApprove) error { return n.operator(ctx, "skill.approve", a) }
	}
	n.registry.Await(g.ctx)
	if err := n.skills.Look(g.ctx); err != nil {
		return err
	}
	g.run("skills", n.skills.Run)
	return nil
}

// unmatched are the names in the rows of tenants and in the policy that nothing has.
func (n *Node) unmatched(declared []approval.Version, down []string) (out []string) {
	var list []datadir.UnknownName
	for _, tenant := range n.directory.Tenants() {
		list = append(list, datadir.UnmatchedNames(n.directory, tenant, declared, down...)...)
	}
	if n.policy != nil {
		list = append(list, datadir.UnmatchedInPolicy(n.policy.Engine(), n.directory, n.catalog, declared, down...)...)
	}
	for _, u := range list {
		out = append(out, u.String())
	}
	return out
}

// SkillServers returns the skill servers as of their last listing, by title.
func (n *Node) SkillServers() []approval.Server { return n.skills.Servers() }

// Breakers are those of skill servers that fail.
func (n *Node) Breakers() []breakers.Breaker { return n.router.Breakers("") }

func (n *Node) addSkills(name string, source mcp.Source) error {
	n.skills.Sources[name] = source
	terms := skills.Terms{Tenants: source.Tenants}
	if source.RPM > 0 {
		terms.Calls = ratelimit.New(source.RPM, time.Minute, ratelimit.Unshared(1), n.cfg.Now)
	}
	dial := n.dialer(source)
	if source.ForwardKey {
		return n.registry.AddForCallers(name, terms, func(ctx context.Context, key string) (skills.Server, error) {
			return dial(ctx, oauth.Access{RoundTripper: skills.ForwardKey(egress.Transport(source.URL), key), Hide: skills.HideKey(key)})
		})
	}
	if source.OAuth.Mode == "" {
		return n.registry.Add(name, terms, func(ctx context.Context) (skills.Server, error) { return dial(ctx, oauth.Access{}) })
	}
	terms.Renews = true
	open := func(ctx context.Context, who intents.Principal) (skills.Server, error) {
		access, err := n.connections.Open(ctx, name, who)
		if err != nil {
			return nil, err
		}
		return dial(ctx, access)
	}
	if source.OAuth.PerUser() {
		return n.registry.AddForUsers(name, terms, open)
	}
	return n.registry.Add(name, terms, func(ctx context.Context) (skills.Server, error) { return open(ctx, intents.Principal{}) })
}

// takeCallerKey answers bus.CallerKeys.
func (n *Node) takeCallerKey(ctx context.Context, text []byte) []byte {
	var k catalog.CallerKey
	links, err := n.links()
	if err == nil {
		var box sealed.Box
		if box, err = sealed.NewBox(links.Key, catalog.CallerKeyUse); err == nil {
			err = box.Open(string(text), &k)
		}
	}
	if err != nil {
		n.cfg.Log.WarnContext(ctx, "a caller's key for skill servers is lost", slog.String("error", err.Error()))
		return nil
	}
	who := intents.Principal{Tenant: k.Tenant, UserID: k.UserID, Session: k.Session}
	if n.registry.TakeKey(who, k.Key) {
		n.registry.Show(who, n.skills.LookSoon)
	}
	return []byte("{}")
}

// openConnections prepares the OAuth tokens of skill servers.
func (n *Node) openConnections(context.Context) (err error) {
	links, err := n.links()
	if err != nil {
		return err
	}
	n.connections, err = oauth.New(oauth.Config{
		Documents: n.documents, Secret: links.Key, Hosts: n.cfg.AgentHosts, Base: n.base, Now: n.cfg.Now, Log: n.cfg.Log,
		Changed: func(who intents.Principal, server string, connected bool) {
			n.registry.Forget(who, server)
			n.answers.Forget(who, server)
			if connected {
				n.registry.Show(who, n.skills.LookSoon)
			}
		},
	})
	for name, source := range n.skills.Sources {
		if err == nil && source.OAuth.Mode != "" {
			n.connections.Add(name, source)
		}
	}
	return err
}

// dialer connects to a server with an access, which is empty for one without OAuth.
func (n *Node) dialer(source mcp.Source) func(context.Context, oauth.Access) (skills.Server, error) {
	isolation := &mcp.Isolation{
		Servers: n.servers, Homes: filepath.Join(n.cfg.Dir, "servers"), // a directory in it for each
		Hidden: append([]string{n.cfg.Dir}, n.cfg.Secrets...),
	}
	return func(ctx context.Context, access oauth.Access) (skills.Server, error) {
		source := source
		source.OAuth.Issuer = cmp.Or(access.Issuer, source.OAuth.Issuer)
		c, err := mcp.Dial(ctx, source, mcp.Options{
			Timeout: cmp.Or(source.Timeout, n.cfg.SkillTimeout), Retries: n.cfg.SkillRetries, Log: n.cfg.Log, Isolation: isolation,
			RoundTripper: access.RoundTripper, Hide: access.Hide,
		})
		if err != nil {
			return nil, err // not c: as a Server it would not be nil
		}
		return c, nil
	}
}

// agentDialer connects to remote agents, which the registry names and not the operator: in the
// public network, and at agent_hosts. An endpoint is a URL and never a command.
func (n *Node) agentDialer() func(context.Context, string) (skills.RemoteAgent, error) {
	door := egress.Transport(n.cfg.AgentHosts...)
	return func(ctx context.Context, endpoint string) (skills.RemoteAgent, error) {
		source, err := mcp.ParseURL(endpoint)
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
