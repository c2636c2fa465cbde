package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"

	"aob.dev/writ/executors/skills"
	"aob.dev/writ/state"
)

// SkillServer is a skill server as the default tenant has it, or the first of its own.
type SkillServer struct {
	Title  string
	Tools  int
	Usable int
	Held   int         // usable ones of which people approve each call
	Others []SkillLeft // tools that cannot be used
	Err    error       // it does not answer
}

// SkillLeft is a tool that cannot be used, and why.
type SkillLeft struct{ Tool, Why string }

// errNotYet stands for a server that has not answered within the time of a listing.
var errNotYet = errors.New("it has not answered yet")

// SkillServers are the skill servers as they were last asked, by title.
func (n *Node) SkillServers() []SkillServer {
	n.skills.mu.Lock()
	defer n.skills.mu.Unlock()
	return slices.Clone(n.skills.servers)
}

// Breakers are those of skill servers that fail.
func (n *Node) Breakers() []state.Breaker { return n.router.Breakers("") }

// summarize keeps what SkillServers tells.
func (w *skillWatcher) summarize(found []skills.Skill) {
	var list []SkillServer
	for _, h := range w.node.registry.Health() {
		s := SkillServer{Title: w.title(h.Name), Err: h.Err}
		tenant := "default"
		if of := w.tenantsOf(h.Name); len(of) > 0 {
			tenant = of[0]
		}
		held := w.approvalOf(tenant)
		if errors.Is(h.Err, context.DeadlineExceeded) {
			s.Err = errNotYet
		}
		for _, x := range found {
			if x.Server != h.Name {
				continue
			}
			s.Tools++
			pin, pinned := w.pinOf(x, tenant)
			why := ""
			switch {
			case x.Err != nil:
				why = "its description cannot be used"
			case !pinned:
				why = "not approved"
			case pin.Digest == x.Digest():
			case pin.Server != "" && pin.Server != w.pinTitle(x):
				why = "approved for another server"
			default:
				why = "changed since it was approved"
			}
			if why != "" {
				s.Others = append(s.Others, SkillLeft{x.Name, why})
				continue
			}
			s.Usable++
			if held.holds(pin) {
				s.Held++
			}
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b SkillServer) int { return cmp.Compare(a.Title, b.Title) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers = list
}

// sayEffects warns once of an effect that the configuration gives to a tool that its
// server does not have: a misspelt name would leave the tool with the server's own word.
func (w *skillWatcher) sayEffects(ctx context.Context, found []skills.Skill) {
	for _, h := range w.node.registry.Health() {
		for _, tool := range slices.Sorted(maps.Keys(w.sources[h.Name].Effects)) {
			now := ""
			if h.Err == nil && !slices.ContainsFunc(found, func(s skills.Skill) bool { return s.Server == h.Name && s.Name == tool }) {
				now = "missing"
			}
			if w.news("effect "+h.Name+" "+tool, now) && now != "" {
				w.node.cfg.Log.WarnContext(ctx, "an effect is configured for a tool that its skill server does not have: correct its name",
					slog.String("tool", tool), slog.String("server", w.title(h.Name)))
			}
		}
	}
}
