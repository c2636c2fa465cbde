package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
)

// skillWatcher asks the skill servers what they declare, at the start and then again and
// again. It approves what may be approved without an operator and logs what may not. One
// goroutine at a time uses it.
type skillWatcher struct {
	node    *Node
	sources map[string]mcp.Source  // of servers by name
	logged  map[string]string      // what was last logged about a server, skill or tenant
	noted   []datadir.SkillVersion // the versions as last written
	agents  chan struct{}          // has one when agents that may name skills were put in force

	mu      sync.Mutex
	servers []SkillServer // as last judged, guarded by mu
}

// maxTitle bounds the server's title in an approval, in bytes.
const maxTitle = 256

// How long the watcher waits before it asks the servers again. After a failure the
// registry waits longer each time, see skills.Registry.
const (
	lookAgain     = 30 * time.Second
	lookAgainSoon = time.Second // while one does not answer
)

// startSkills asks the skill servers once, and then again and again.
func (n *Node) startSkills(g *group) error {
	n.registry.Await(g.ctx)
	if err := n.skills.look(g.ctx); err != nil {
		return err
	}
	g.run("skills", n.skills.run)
	return nil
}

// run looks again until ctx ends. So a server that was down is used once it answers, and
// skills that it declares later are judged like the others.
func (w *skillWatcher) run(ctx context.Context) error {
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, w.wait())
		select {
		case <-w.agents:
			w.sayUnmatched(ctx)
		case <-wait.Done():
			if err := w.look(ctx); err != nil && ctx.Err() == nil {
				w.node.cfg.Log.WarnContext(ctx, "skills were not approved", slog.String("error", err.Error()))
			}
		}
		cancel()
	}
	return nil
}

// newAgents has the names in agents looked at soon.
func (w *skillWatcher) newAgents() {
	select {
	case w.agents <- struct{}{}:
	default:
	}
}

func (w *skillWatcher) wait() time.Duration {
	for _, h := range w.node.registry.Health() {
		if h.Err != nil {
			return lookAgainSoon
		}
	}
	return lookAgain
}

// look asks the servers once and judges what they declare. It logs servers that do not
// answer. The error is that of an approval.
func (w *skillWatcher) look(ctx context.Context) error {
	if len(w.sources) == 0 {
		if w.node.alone() { // else other processes may have some
			w.sayUnmatched(ctx)
		}
		return nil
	}
	found, _ := w.node.registry.Skills(ctx) // each error is in its server's health
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.sayHealth(ctx)
	w.writeVersions(ctx, found)
	if w.node.directory == nil {
		w.propose(ctx, found)
		return nil
	}
	w.sayHolds(ctx)
	for _, s := range found {
		if s.Err != nil {
			w.say(ctx, s, "default", "skill left out", slog.String("error", s.Err.Error()))
			continue
		}
		for _, tenant := range w.tenantsOf(s.Server) {
			if err := w.judge(ctx, s, tenant); err != nil {
				return err
			}
		}
	}
	w.sayEffects(ctx, found)
	w.sayUnmatched(ctx)
	w.summarize(found)
	return nil
}

const saysRefused = "skill is refused until this version is approved"

// propose says how skills are approved, once for each version. A process that does not
// follow the record approves none, and does not know which are.
func (w *skillWatcher) propose(ctx context.Context, found []skills.Skill) {
	for _, s := range found {
		if s.Err != nil {
			w.say(ctx, s, "default", "skill left out", slog.String("error", s.Err.Error()))
			continue
		}
		tenants := w.sources[s.Server].Tenants
		if tenants == nil {
			tenants = []string{"default"}
		}
		for _, tenant := range tenants {
			w.say(ctx, s, tenant, saysRefused, w.approveWith(s, tenant, intents.Pin{}))
		}
	}
}

// title of a server for people.
func (w *skillWatcher) title(server string) string { return w.sources[server].Title() }

// tenantsOf are the tenants in which skills of a server are approved on first sight: those
// of the configuration that are there, else the default one.
func (w *skillWatcher) tenantsOf(server string) []string {
	of := w.sources[server].Tenants
	if of == nil {
		return []string{"default"}
	}
	there := w.node.directory.Tenants()
	return slices.DeleteFunc(slices.Clone(of), func(tenant string) bool { return !slices.Contains(there, tenant) })
}

// news says whether something else was last logged about a server, skill or tenant.
func (w *skillWatcher) news(about, now string) bool {
	was := w.logged[about]
	w.logged[about] = now
	return was != now
}

// sayHealth logs once that a server does not answer, and once that it answers again.
func (w *skillWatcher) sayHealth(ctx context.Context) {
	log := w.node.cfg.Log
	for _, h := range w.node.registry.Health() {
		key, now := "server "+h.Name, ""
		if h.Err != nil {
			now = "down"
		}
		if !w.news(key, now) {
			continue
		}
		if h.Err == nil {
			log.InfoContext(ctx, "a skill server answers again", slog.String("server", w.title(h.Name)), slog.Int("tools", h.Tools))
			continue
		}
		log.WarnContext(ctx, "a skill server does not answer, and its skills are missing until it does: start it, or correct --skills; writ will ask it again",
			slog.String("server", w.title(h.Name)), slog.String("error", h.Err.Error()))
	}
}

// say logs something about a skill in a tenant, unless it was the last thing logged about
// it.
func (w *skillWatcher) say(ctx context.Context, s skills.Skill, tenant, text string, more ...slog.Attr) {
	key, now := "skill "+tenant+" "+s.ID(), text+s.Digest()
	if !w.news(key, now) {
		return
	}
	attrs := append([]slog.Attr{slog.String("skill", s.ID()), slog.String("server", w.title(s.Server)), slog.String("tenant", tenant)}, more...)
	w.node.cfg.Log.LogAttrs(ctx, slog.LevelWarn, text, attrs...) //nolint:sloglint // its callers give literals
}

// pinOf is the approval of a skill in a tenant, of this version or else of another.
func (w *skillWatcher) pinOf(s skills.Skill, tenant string) (pin intents.Pin, pinned bool) {
	return datadir.SkillVersion{Name: s.ID(), Server: w.pinTitle(s), Digest: s.Digest()}.Pin(w.node.directory.View().Pins(tenant))
}

// pinTitle is the title of a skill's server in its approval.
func (w *skillWatcher) pinTitle(s skills.Skill) string {
	return executors.Cut(w.title(s.Server), maxTitle)
}

// judge decides on one skill in one tenant.
func (w *skillWatcher) judge(ctx context.Context, s skills.Skill, tenant string) error {
	pin, pinned := w.pinOf(s, tenant)
	switch {
	case !pinned:
		return w.firstSight(ctx, s, tenant)
	case pin.Digest == s.Digest():
	case pin.Server != "" && pin.Server != w.pinTitle(s):
		w.say(ctx, s, tenant, "skill is approved for another skill server, and is refused until it is approved for this one", w.approveWith(s, tenant, pin))
	default:
		w.say(ctx, s, tenant, "skill has changed and is refused until it is approved again", w.approveWith(s, tenant, pin))
	}
	return nil
}

// approveWith is the command that approves a skill with its approved effect, or else with
// the effect of its hints, which an operator compares with what the tool does.
func (w *skillWatcher) approveWith(s skills.Skill, tenant string, pin intents.Pin) slog.Attr {
	effect := cmp.Or(pin.Effect, w.sources[s.Server].Effects[s.Name], string(claimOf(s)))
	line := fmt.Sprintf("writ skill approve %s --digest %s --effect %s", s.ID(), s.Digest(), effect)
	if pin.Destructive != "" {
		line += " --destructive " + pin.Destructive
	}
	if pin.CacheSeconds > 0 {
		line += fmt.Sprintf(" --cache-seconds %d", pin.CacheSeconds)
	}
	if pin.Shared {
		line += " --shared"
	}
	if tenant != "default" {
		line += " --tenant " + tenant
	}
	return slog.String("approve", line)
}

// firstSight decides on a skill that nobody has approved, of a server that the operator
// has named. It approves a skill that only reads by the word of the operator or of a server
// that the operator trusts, and one whose effect the operator has declared. It approves a
// skill with effect once if each call is held until people approve it. It leaves every other
// one to the operator, and so one that was revoked.
func (w *skillWatcher) firstSight(ctx context.Context, s skills.Skill, tenant string) error {
	effect := w.effectOf(s)
	_, declared := w.sources[s.Server].Effects[s.Name]
	with := w.approveWith(s, tenant, intents.Pin{})
	switch {
	case w.node.directory.View().SkillRevoked(tenant, s.ID()):
		w.say(ctx, s, tenant, "skill was revoked, and is refused until it is approved again", with)
		return nil
	case !w.operates():
		w.say(ctx, s, tenant, saysRefused, with)
		return nil
	case effect == catalog.Once && w.approvalOf(tenant).Once:
		w.note(ctx, s, tenant, "skill approved; each call of it waits for the approval of people")
	case effect == catalog.Pure || declared:
		w.note(ctx, s, tenant, "skill approved")
	case effect == catalog.Once:
		w.say(ctx, s, tenant, "skill that acts once is not approved, as nothing would hold its calls", with)
		return nil
	default:
		w.say(ctx, s, tenant, "skill that acts is not approved", with)
		return nil
	}
	return w.node.operator(ctx, "skill.approve", catalog.SkillApprove{
		Tenant: tenant, Skill: s.ID(), Digest: s.Digest(), Effect: effect, Destructive: w.destructive(s), Server: w.pinTitle(s), InputSchema: datadir.PinnedSchema(s.InputSchema),
	})
}

// operates says whether the process has the key of an operator, which approvals take.
func (w *skillWatcher) operates() bool { return w.node.alone() || w.node.cfg.Cluster.operates }

// sayUnmatched warns once of each name in the data of a tenant or in the policy that matches nothing, and of
// each tenant of a server that is not there. While a server is down its skills are not known.
func (w *skillWatcher) sayUnmatched(ctx context.Context) {
	if slices.ContainsFunc(w.node.registry.Health(), func(h skills.Health) bool { return h.Err != nil }) {
		return
	}
	tenants := w.node.directory.Tenants()
	now := map[string]bool{}
	for _, tenant := range tenants {
		for _, u := range datadir.UnmatchedNames(w.node.directory, tenant, w.noted) {
			now[u.String()] = true
		}
	}
	if w.node.policy != nil {
		for _, u := range datadir.UnmatchedInPolicy(w.node.policy.Engine(), w.node.directory, w.node.catalog, w.noted) {
			now[u.String()] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.sources)) {
		for _, tenant := range w.sources[name].Tenants {
			if !slices.Contains(tenants, tenant) {
				now[fmt.Sprintf("skill server %s: there is no tenant %q", w.title(name), tenant)] = true
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(now)) {
		if w.news("name "+text, "said") {
			w.node.cfg.Log.WarnContext(ctx, "a name in the settings matches nothing, and has no effect: correct it or leave it out", slog.String("name", text))
		}
	}
}

// note logs the effect of a new skill.
func (w *skillWatcher) note(ctx context.Context, s skills.Skill, tenant, text string) {
	attrs := []slog.Attr{slog.String("skill", s.ID()), slog.String("server", w.title(s.Server)), slog.String("tenant", tenant), slog.String("effect", string(w.effectOf(s)))}
	if claim := claimOf(s); claim == catalog.Pure && w.effectOf(s) == catalog.Once {
		attrs = append(attrs, slog.String("claims", string(claim)), w.approveWith(s, tenant, intents.Pin{}))
	}
	w.node.cfg.Log.LogAttrs(ctx, slog.LevelInfo, text, attrs...) //nolint:sloglint // its callers give literals
}

// effectOf is the effect that the operator has declared, or else that of the server's
// hints. That a tool only reads is believed of servers that the operator trusts alone.
// Without either it is once.
func (w *skillWatcher) effectOf(s skills.Skill) catalog.Effect {
	src := w.sources[s.Server]
	effect := catalog.Effect(cmp.Or(src.Effects[s.Name], string(claimOf(s))))
	if effect == catalog.Pure && src.Effects[s.Name] == "" && !src.Trust {
		return catalog.Once
	}
	return effect
}

// claimOf is the effect that the server's hints claim.
func claimOf(s skills.Skill) catalog.Effect {
	switch {
	case s.Destroys() && !isTrue(s.IdempotentHint):
		return catalog.Once
	case isTrue(s.ReadOnlyHint) && !s.Destroys():
		return catalog.Pure
	case isTrue(s.IdempotentHint):
		return catalog.Idempotent
	default:
		return catalog.Once
	}
}

func isTrue(hint *bool) bool { return hint != nil && *hint }

// destructive says what an approval says of it: yes by anybody's word, no by that of a server
// that the operator trusts.
func (w *skillWatcher) destructive(s skills.Skill) string {
	switch {
	case s.Destroys():
		return intents.Yes
	case s.DestructiveHint != nil && w.sources[s.Server].Trust:
		return intents.No
	default:
		return ""
	}
}

// approvalRule is the tenant data that says which calls wait for people.
type approvalRule struct {
	Once   bool     `json:"once"`
	Skills []string `json:"skills"`
}

// holds says whether the rule holds calls of the skill.
func (r approvalRule) holds(pin intents.Pin) bool {
	return r.Once && pin.Guarded() || slices.ContainsFunc(r.Skills, pin.Named)
}

// approvalOf reads a tenant's rule. A rule that cannot be read holds nothing.
func (w *skillWatcher) approvalOf(tenant string) (rule approvalRule) {
	raw := w.node.directory.View().TenantData(tenant)["approval"]
	if len(raw) == 0 || json.Unmarshal(raw, &rule) != nil {
		return approvalRule{}
	}
	return rule
}

// sayHolds warns once of each tenant that has approved skills that act once or may destroy
// something and whose calls are not held. That is so if somebody has turned it off.
func (w *skillWatcher) sayHolds(ctx context.Context) {
	for _, tenant := range w.node.directory.Tenants() {
		rule := w.approvalOf(tenant)
		var acting []string
		for _, pin := range w.node.directory.View().Pins(tenant) {
			if pin.Guarded() && !rule.holds(pin) {
				acting = append(acting, pin.Skill)
			}
		}
		key, now := "holds "+tenant, ""
		if len(acting) > 0 {
			now = "none"
		}
		if w.news(key, now) && now != "" {
			w.node.cfg.Log.WarnContext(ctx, "skills that act once or may destroy something are called without anybody's approval", slog.String("tenant", tenant),
				slog.Any("skills", acting), slog.String("hold", `writ tenant data approval '{"once":true}' --tenant `+tenant))
		}
	}
}
