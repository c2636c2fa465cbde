// Package approval decides which declared skills are approved without an operator, reports all
// others to the operator, and stores the declared versions for comparison.
package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state"
)

// Watcher lists the tools of the skill servers, at the start and then periodically. It approves
// what may be approved without an operator and logs the rest. Except for LookSoon, NewAgents and Servers, one
// goroutine at a time may use it.
type Watcher struct {
	Registry *skills.Registry
	Sources  map[string]mcp.Source // of servers by name
	Dir      string                // data directory of the process
	State    *state.State          // nil: the process does not follow the record
	// Approve sends an approval as the operator; nil: the process has not the operator's key.
	Approve func(context.Context, catalog.SkillApprove) error
	// Unmatched are the names in settings that nothing has. It does not judge those that may be
	// of servers that are down.
	Unmatched func(declared []Version, down []string) []string
	Log       *slog.Logger

	logged map[string]string // last log line about a server, skill or tenant
	noted  []Version         // the versions as last written
	agents chan struct{}     // has one when agents that may name skills were put in force
	soon   chan struct{}     // has one when the servers are to be listed at once

	mu      sync.Mutex
	servers []Server // as last judged, guarded by mu
}

// New makes a watcher of the servers of a registry. The caller sets the other fields.
func New(r *skills.Registry, dir string, log *slog.Logger) *Watcher {
	return &Watcher{
		Registry: r, Sources: map[string]mcp.Source{}, Dir: dir, Log: log,
		logged: map[string]string{}, agents: make(chan struct{}, 1), soon: make(chan struct{}, 1),
	}
}

// maxTitle bounds the server's title in an approval, in bytes.
const maxTitle = 256

// How long the watcher waits before it asks the servers again. After a failure the
// registry waits longer each time, see skills.Registry.
const (
	pollEvery = 30 * time.Second
	pollSoon  = time.Second // while one does not answer
)

// Run looks again until ctx ends. So a server that was down is used once it answers, and
// skills that it declares later are judged like the others.
func (w *Watcher) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, w.wait())
		select {
		case <-w.agents:
			w.logUnmatched(ctx)
		case <-wait.Done():
			w.look(ctx)
		case <-w.soon:
			w.look(ctx)
		}
		cancel()
	}
	return nil
}

func (w *Watcher) look(ctx context.Context) {
	if err := w.Look(ctx); err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "skills were not approved", slog.String("error", err.Error()))
	}
}

// LookSoon schedules a look: a user has connected, and a server has shown its tools.
func (w *Watcher) LookSoon() {
	select {
	case w.soon <- struct{}{}:
	default:
	}
}

// NewAgents schedules a check of the names in agents.
func (w *Watcher) NewAgents() {
	select {
	case w.agents <- struct{}{}:
	default:
	}
}

func (w *Watcher) wait() time.Duration {
	for _, h := range w.Registry.Health() {
		if h.Err != nil {
			return pollSoon
		}
	}
	return pollEvery
}

// Look lists the tools of the servers once and decides on them. It logs servers that do not answer.
// The error is that of an approval.
func (w *Watcher) Look(ctx context.Context) error {
	if len(w.Sources) == 0 {
		if w.Approve != nil { // else other processes may have servers
			w.logUnmatched(ctx)
		}
		return nil
	}
	found, _ := w.Registry.Skills(ctx, intents.Principal{}) // each error is in its server's health
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.logHealth(ctx)
	w.writeVersions(ctx, found)
	if w.State == nil {
		w.propose(ctx, found)
		return nil
	}
	w.logHolds(ctx)
	for _, s := range found {
		if s.Err != nil {
			w.warn(ctx, s, "default", "skill left out", slog.String("error", s.Err.Error()))
			continue
		}
		for _, tenant := range w.tenantsOf(s.Server) {
			if err := w.judge(ctx, s, tenant); err != nil {
				return err
			}
		}
	}
	w.logUnknownTools(ctx, found)
	w.logUnmatched(ctx)
	w.summarize(found)
	return nil
}

const refused = "skill is refused until this version is approved"

// propose logs how to approve skills, once for each version. A process that does not follow the
// record approves none and does not know which are approved.
func (w *Watcher) propose(ctx context.Context, found []skills.Skill) {
	for _, s := range found {
		if s.Err != nil {
			w.warn(ctx, s, "default", "skill left out", slog.String("error", s.Err.Error()))
			continue
		}
		tenants := w.Sources[s.Server].Tenants
		if tenants == nil {
			tenants = []string{"default"}
		}
		for _, tenant := range tenants {
			w.warn(ctx, s, tenant, refused, w.approveWith(s, tenant, intents.Pin{}))
		}
	}
}

// title of a server for people.
func (w *Watcher) title(server string) string { return w.Sources[server].Title() }

// tenantsOf are the tenants in which skills of a server are approved on first sight: the existing
// ones of the configuration, else the default one.
func (w *Watcher) tenantsOf(server string) []string {
	of := w.Sources[server].Tenants
	if of == nil {
		return []string{"default"}
	}
	there := w.State.Tenants()
	return slices.DeleteFunc(slices.Clone(of), func(tenant string) bool { return !slices.Contains(there, tenant) })
}

// pinOf is the approval of a skill in a tenant, of this version or else of another.
func (w *Watcher) pinOf(s skills.Skill, tenant string) (pin intents.Pin, pinned bool) {
	return Version{Name: s.ID(), Server: w.pinTitle(s), Digest: s.Digest()}.Pin(w.State.View().Pins(tenant))
}

// pinTitle is the title of a skill's server in its approval.
func (w *Watcher) pinTitle(s skills.Skill) string {
	return visible.Cut(w.title(s.Server), maxTitle)
}

// judge decides on one skill in one tenant.
func (w *Watcher) judge(ctx context.Context, s skills.Skill, tenant string) error {
	pin, pinned := w.pinOf(s, tenant)
	switch {
	case !pinned:
		return w.firstSight(ctx, s, tenant)
	case pin.Digest == s.Digest():
	case pin.Server != "" && pin.Server != w.pinTitle(s):
		w.warn(ctx, s, tenant, "skill is approved for another skill server, and is refused until it is approved for this one", w.approveWith(s, tenant, pin))
	default:
		w.warn(ctx, s, tenant, "skill has changed and is refused until it is approved again", w.approveWith(s, tenant, pin))
	}
	return nil
}

// firstSight decides on a skill that nobody has approved, of a server that the operator configured.
// It approves a skill that is read-only according to the operator or a trusted server, and one
// whose effect the operator has declared. It approves a skill with effect once if each call needs
// approval by people. It leaves all others, including revoked ones, to the operator.
func (w *Watcher) firstSight(ctx context.Context, s skills.Skill, tenant string) error {
	effect := w.effectOf(s)
	_, declared := w.Sources[s.Server].Effects[s.Name]
	with := w.approveWith(s, tenant, intents.Pin{})
	switch {
	case w.State.View().SkillRevoked(tenant, s.ID()):
		w.warn(ctx, s, tenant, "skill was revoked, and is refused until it is approved again", with)
		return nil
	case w.Approve == nil:
		w.warn(ctx, s, tenant, refused, with)
		return nil
	case effect == catalog.Once && w.ruleOf(tenant).Once:
		w.logApproved(ctx, s, tenant, "skill approved; people must approve each call")
	case effect == catalog.Pure || declared:
		w.logApproved(ctx, s, tenant, "skill approved")
	case effect == catalog.Once:
		w.warn(ctx, s, tenant, "skill that acts once is not approved, as nothing would hold its calls", with)
		return nil
	default:
		w.warn(ctx, s, tenant, "skill that acts is not approved", with)
		return nil
	}
	return w.Approve(ctx, catalog.SkillApprove{
		Tenant: tenant, Skill: s.ID(), Digest: s.Digest(), Effect: effect, Destructive: w.destructive(s), Trusted: w.Sources[s.Server].Trust, OpenWorld: w.openWorld(s), Server: w.pinTitle(s), InputSchema: PinnedSchema(s.InputSchema),
	})
}

// effectOf is the effect that the operator has declared, or else that of the server's
// hints. That a tool only reads is believed of servers that the operator trusts alone.
// Without either it is once.
func (w *Watcher) effectOf(s skills.Skill) catalog.Effect {
	src := w.Sources[s.Server]
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

// destructive is the value for the approval: anybody may claim yes, only a server that the operator
// trusts may claim no.
func (w *Watcher) destructive(s skills.Skill) string {
	switch {
	case s.Destroys():
		return intents.Yes
	case s.DestructiveHint != nil && w.Sources[s.Server].Trust:
		return intents.No
	default:
		return ""
	}
}

// openWorld is the value for the approval: what the operator says, else what a server says that the
// operator trusts; a trusted server that says nothing is closed.
func (w *Watcher) openWorld(s skills.Skill) string {
	src := w.Sources[s.Server]
	switch {
	case src.OpenWorld != nil && *src.OpenWorld, src.OpenWorld == nil && src.Trust && isTrue(s.OpenWorldHint):
		return intents.Yes
	case src.OpenWorld != nil || src.Trust:
		return intents.No
	default:
		return ""
	}
}

// rule is the tenant data that selects the calls that need approval by people.
type rule struct {
	Once   bool     `json:"once"`
	Skills []string `json:"skills"`
}

// holds reports whether the rule holds calls of the skill for approval.
func (r rule) holds(pin intents.Pin) bool {
	return r.Once && pin.Guarded() || slices.ContainsFunc(r.Skills, pin.Matches)
}

// ruleOf reads a tenant's rule. A rule that cannot be read holds nothing.
func (w *Watcher) ruleOf(tenant string) (r rule) {
	raw := w.State.View().TenantData(tenant)["approval"]
	if len(raw) == 0 || json.Unmarshal(raw, &r) != nil {
		return rule{}
	}
	return r
}
