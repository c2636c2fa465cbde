package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/skills"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// firstSight decides on a skill that nobody has approved, of a server that the
// operator has named. A skill that only reads is approved; so is one whose effect
// the operator has declared. One that acts once is approved if each call of it is
// held until people approve. One that says of itself that it may act again and
// again is left to the operator: nothing would hold it.
func (k *skillKeeper) firstSight(ctx context.Context, s skills.Skill) error {
	effect := k.effectOf(s)
	_, declared := k.effects[s.Server][s.Name]
	switch {
	case effect == catalog.Once && k.holdsOnce():
		k.note(ctx, s, "skill approved; each call of it waits for the approval of people")
	case effect == catalog.Pure || declared:
		k.note(ctx, s, "skill approved")
	case effect == catalog.Once:
		k.say(ctx, s, "skill that acts once is not approved, as nothing would hold its calls", k.approveWith(s, intents.Pin{}))
		return nil
	default:
		k.say(ctx, s, "skill that acts is not approved", k.approveWith(s, intents.Pin{}))
		return nil
	}
	return k.node.operator(ctx, "skill.approve", catalog.SkillApprove{
		Tenant: "default", Skill: s.Name, Digest: s.Digest(), Effect: effect, Server: executors.Cut(k.titles[s.Server], maxTitle),
	})
}

// note tells the effect of a skill at first sight.
func (k *skillKeeper) note(ctx context.Context, s skills.Skill, text string) {
	k.node.cfg.Log.LogAttrs(ctx, slog.LevelInfo, text, //nolint:sloglint // its callers give literals
		slog.String("skill", s.Name), slog.String("server", k.titles[s.Server]), slog.String("effect", string(k.effectOf(s))))
}

// effectOf is what the operator has declared, else what the server's hints say;
// what nobody says is once.
func (k *skillKeeper) effectOf(s skills.Skill) catalog.Effect {
	if declared := k.effects[s.Server][s.Name]; declared != "" {
		return catalog.Effect(declared)
	}
	switch {
	case s.ReadOnlyHint != nil && *s.ReadOnlyHint:
		return catalog.Pure
	case s.IdempotentHint != nil && *s.IdempotentHint:
		return catalog.Idempotent
	default:
		return catalog.Once
	}
}

// approvalRule is what tenant data says of calls that wait for people.
type approvalRule struct {
	Once   bool     `json:"once"`
	Skills []string `json:"skills"`
}

// approvalOf reads a tenant's rule. One that cannot be read holds nothing.
func (k *skillKeeper) approvalOf(tenant string) (rule approvalRule) {
	raw := k.node.directory.View().TenantData(tenant)["approval"]
	if len(raw) == 0 || json.Unmarshal(raw, &rule) != nil {
		return approvalRule{}
	}
	return rule
}

// holdsOnce: calls of skills that act once wait for people, in the tenant whose
// skills are approved at first sight.
func (k *skillKeeper) holdsOnce() bool { return k.approvalOf("default").Once }

// sayHolds warns, once, of each tenant whose approved skills act once while no call
// of them is held: as in a log from before that was the default, or where somebody
// has turned it off.
func (k *skillKeeper) sayHolds(ctx context.Context) {
	for _, tenant := range k.node.directory.Tenants() {
		rule := k.approvalOf(tenant)
		var acting []string
		for _, pin := range k.node.directory.View().Pins(tenant) {
			if pin.Effect == string(catalog.Once) && !rule.Once && !slices.Contains(rule.Skills, pin.Skill) {
				acting = append(acting, pin.Skill)
			}
		}
		key, now := "holds "+tenant, ""
		if len(acting) > 0 {
			now = "none"
		}
		if k.told[key] == now {
			continue
		}
		k.told[key] = now
		if now != "" {
			k.node.cfg.Log.WarnContext(ctx, "skills that act once are called without anybody's approval", slog.String("tenant", tenant),
				slog.Any("skills", acting), slog.String("hold", `writ tenant data approval '{"once":true}' --tenant `+tenant))
		}
	}
}
