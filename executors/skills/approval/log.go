package approval

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// news reports whether the last log line about a server, skill or tenant differs.
func (w *Watcher) news(about, now string) bool {
	was := w.logged[about]
	w.logged[about] = now
	return was != now
}

// logHealth logs once that a server does not answer, and once that it answers again.
func (w *Watcher) logHealth(ctx context.Context) {
	log := w.Log
	for _, h := range w.Registry.Health() {
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

// warn logs something about a skill in a tenant, unless it was the last thing logged about
// it.
func (w *Watcher) warn(ctx context.Context, s skills.Skill, tenant, text string, more ...slog.Attr) {
	key, now := "skill "+tenant+" "+s.ID(), text+s.Digest()
	if !w.news(key, now) {
		return
	}
	attrs := append([]slog.Attr{slog.String("skill", s.ID()), slog.String("server", w.title(s.Server)), slog.String("tenant", tenant)}, more...)
	w.Log.LogAttrs(ctx, slog.LevelWarn, text, attrs...) //nolint:sloglint // its callers give literals
}

// approveWith is the command that approves a skill with its approved effect, or else with
// the effect of its hints, for the operator to compare with what the tool does.
func (w *Watcher) approveWith(s skills.Skill, tenant string, pin intents.Pin) slog.Attr {
	effect := cmp.Or(pin.Effect, w.Sources[s.Server].Effects[s.Name], string(claimOf(s)))
	line := fmt.Sprintf("writ skill approve %s --digest %s --effect %s", s.ID(), s.Digest(), effect)
	if pin.Destructive != "" {
		line += " --destructive " + pin.Destructive
	}
	if w.Sources[s.Server].Trust {
		line += " --trusted"
	}
	if world := w.openWorld(s); world != "" {
		line += " --open-world " + world
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

// logApproved logs the effect of a new skill.
func (w *Watcher) logApproved(ctx context.Context, s skills.Skill, tenant, text string) {
	attrs := []slog.Attr{slog.String("skill", s.ID()), slog.String("server", w.title(s.Server)), slog.String("tenant", tenant), slog.String("effect", string(w.effectOf(s)))}
	if len(s.Unchecked) > 0 {
		attrs = append(attrs, slog.Any("unchecked", s.Unchecked))
	}
	if claim := claimOf(s); claim == catalog.Pure && w.effectOf(s) == catalog.Once {
		attrs = append(attrs, slog.String("claims", string(claim)), w.approveWith(s, tenant, intents.Pin{}))
	}
	w.Log.LogAttrs(ctx, slog.LevelInfo, text, attrs...) //nolint:sloglint // its callers give literals
}

// logUnmatched warns once of each name in the data of a tenant or in the policy that matches nothing, and of
// each tenant of a server that is not there. While a server is down its skills are not known: names that may
// be of one are not judged.
func (w *Watcher) logUnmatched(ctx context.Context) {
	var down []string
	for _, h := range w.Registry.Health() {
		if h.Err != nil {
			down = append(down, h.Name)
		}
	}
	now := map[string]bool{}
	for _, text := range w.Unmatched(w.noted, down) {
		now[text] = true
	}
	tenants := w.State.Tenants()
	for _, name := range slices.Sorted(maps.Keys(w.Sources)) {
		for _, tenant := range w.Sources[name].Tenants {
			if !slices.Contains(tenants, tenant) {
				now[fmt.Sprintf("skill server %s: there is no tenant %q", w.title(name), tenant)] = true
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(now)) {
		if w.news("name "+text, "said") {
			w.Log.WarnContext(ctx, "a name in the settings matches nothing, and has no effect: correct it or leave it out", slog.String("name", text))
		}
	}
}

// logHolds warns once about each tenant with approved skills that act once or may destroy something
// and whose calls are not held for approval, because somebody has turned that off.
func (w *Watcher) logHolds(ctx context.Context) {
	for _, tenant := range w.State.Tenants() {
		rule := w.ruleOf(tenant)
		var acting []string
		for _, pin := range w.State.View().Pins(tenant) {
			if pin.Guarded() && !rule.holds(pin) {
				acting = append(acting, pin.Skill)
			}
		}
		key, now := "holds "+tenant, ""
		if len(acting) > 0 {
			now = "none"
		}
		if w.news(key, now) && now != "" {
			w.Log.WarnContext(ctx, "skills that act once or may destroy something are called without anybody's approval", slog.String("tenant", tenant),
				slog.Any("skills", acting), slog.String("hold", `writ tenant data approval '{"once":true}' --tenant `+tenant))
		}
	}
}

// logUnknownTools warns once of a tool that the configuration names and its server does not have: a
// misspelt name would leave the tool with the server's own word, and its usual time.
func (w *Watcher) logUnknownTools(ctx context.Context, found []skills.Skill) {
	for _, h := range w.Registry.Health() {
		src := w.Sources[h.Name]
		for _, tool := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(src.Effects)), maps.Keys(src.Timeouts))))) {
			now := ""
			if h.Err == nil && !slices.ContainsFunc(found, func(s skills.Skill) bool { return s.Server == h.Name && s.Name == tool }) {
				now = "missing"
			}
			if w.news("tool "+h.Name+" "+tool, now) && now != "" {
				w.Log.WarnContext(ctx, "an effect or a timeout is configured for a tool that its skill server does not have: correct its name",
					slog.String("tool", tool), slog.String("server", w.title(h.Name)))
			}
		}
	}
}
