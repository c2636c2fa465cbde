package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
)

// skillKeeper looks at what the skill servers declare, at the start and then
// again and again, approves what may be approved on first sight, and says what
// is not. One goroutine at a time uses it.
type skillKeeper struct {
	node   *Node
	titles map[string]string    // of servers by name
	told   map[string]string    // what was last said of a server or skill
	noted  []datadir.SkillVersion // the versions as last written

	effects map[string]map[string]string // that operators declare, by server and tool
}

func newSkillKeeper(n *Node) *skillKeeper {
	return &skillKeeper{node: n, titles: map[string]string{}, told: map[string]string{}, effects: map[string]map[string]string{}}
}

// maxTitle bounds what an approval says of a server, in bytes.
const maxTitle = 256

// How long after the servers were asked they are asked again. A server that
// failed rests longer each time, see skills.Registry.
const (
	lookAgain     = 30 * time.Second
	lookAgainSoon = time.Second // while one does not answer
)

// run looks again until ctx ends: a server that was down comes in when it is
// well, and what one begins to declare later is judged like the rest.
func (k *skillKeeper) run(ctx context.Context) error {
	for wait := k.wait(); ; wait = k.wait() {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.node.cfg.Log.WarnContext(ctx, "skills were not approved", slog.String("error", err.Error()))
		}
	}
}

func (k *skillKeeper) wait() time.Duration {
	for _, h := range k.node.registry.Health() {
		if h.Err != nil {
			return lookAgainSoon
		}
	}
	return lookAgain
}

// look asks the servers once and judges what they declare. A server that does
// not answer is said; the error is that of an approval.
func (k *skillKeeper) look(ctx context.Context) error {
	if len(k.titles) == 0 {
		return nil
	}
	found, _ := k.node.registry.Skills(ctx) // each error is in its server's health
	if ctx.Err() != nil {
		return ctx.Err()
	}
	k.sayHealth(ctx)
	k.writeVersions(ctx, found)
	k.sayHolds(ctx)
	byName := map[string][]skills.Skill{}
	var names []string
	for _, s := range found {
		if s.Err != nil {
			k.say(ctx, s, "skill left out", slog.String("error", s.Err.Error()))
			continue
		}
		if byName[s.Name] == nil {
			names = append(names, s.Name)
		}
		byName[s.Name] = append(byName[s.Name], s)
	}
	for _, name := range names {
		if err := k.judge(ctx, byName[name]); err != nil {
			return err
		}
	}
	return nil
}

// sayHealth says once that a server does not answer, and once that it is back.
func (k *skillKeeper) sayHealth(ctx context.Context) {
	log := k.node.cfg.Log
	for _, h := range k.node.registry.Health() {
		key, now := "server "+h.Name, ""
		if h.Err != nil {
			now = "down"
		}
		if k.told[key] == now {
			continue
		}
		k.told[key] = now
		if h.Err == nil {
			log.InfoContext(ctx, "a skill server answers again", slog.String("server", k.titles[h.Name]), slog.Int("tools", h.Tools))
			continue
		}
		log.WarnContext(ctx, "a skill server does not answer; its skills are not there until it does: start it, or correct --skills; it is asked again",
			slog.String("server", k.titles[h.Name]), slog.String("error", h.Err.Error()))
	}
}

// say says something of a skill, unless it was the last thing said of it.
func (k *skillKeeper) say(ctx context.Context, s skills.Skill, text string, more ...slog.Attr) {
	key, now := "skill "+s.Server+" "+s.Name, text+s.Digest()
	if k.told[key] == now {
		return
	}
	k.told[key] = now
	attrs := append([]slog.Attr{slog.String("skill", s.Name), slog.String("server", k.titles[s.Server])}, more...)
	k.node.cfg.Log.LogAttrs(ctx, slog.LevelWarn, text, attrs...) //nolint:sloglint // its callers give literals
}

// judge decides on one name, which several servers may declare. An approval
// binds the server, so what another one declares under the same name is never
// called, and is said.
func (k *skillKeeper) judge(ctx context.Context, declared []skills.Skill) error {
	pin, pinned := k.node.directory.View().Pin("default", declared[0].Name)
	if !pinned && len(declared) == 1 {
		return k.firstSight(ctx, declared[0])
	}
	approved := slices.ContainsFunc(declared, func(s skills.Skill) bool { return s.Digest() == pin.Digest })
	for _, s := range declared {
		switch {
		case pinned && s.Digest() == pin.Digest:
		case approved:
			k.say(ctx, s, "a second skill server declares a skill that is approved for another server: it is refused and gets no call", slog.String("digest", s.Digest()))
		case len(declared) > 1:
			k.say(ctx, s, "skill is declared by several servers and none is approved: approve one, or leave the others out of --skills", k.approveWith(s, pin))
		case s.UnboundDigest() == pin.Digest:
			k.say(ctx, s, "skill was approved before approvals bound the server, and is refused until it is approved again", k.approveWith(s, pin))
		case pin.Server != "" && pin.Server != executors.Cut(k.titles[s.Server], maxTitle):
			k.say(ctx, s, "skill is approved for another skill server, and is refused until it is approved for this one", k.approveWith(s, pin))
		default:
			k.say(ctx, s, "skill has changed and is refused until it is approved again", k.approveWith(s, pin))
		}
	}
	return nil
}

// approveWith is the command that approves a skill with the effect that it had,
// else with the one that its hints say.
func (k *skillKeeper) approveWith(s skills.Skill, pin intents.Pin) slog.Attr {
	effect := pin.Effect
	if effect == "" {
		effect = string(k.effectOf(s))
	}
	return slog.String("approve", fmt.Sprintf("writ skill approve %s --digest %s --effect %s", s.Name, s.Digest(), effect))
}
