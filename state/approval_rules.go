package state

import (
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// Approvals lists the rules by which the file of a task's agent holds an intent, whatever the
// policy decides. The scopes of the agent's revision contain the held calls.
func (t Task) Approvals(typ string, args json.RawMessage) []intents.HoldRule {
	var rules []intents.HoldRule
	for _, h := range t.Holds {
		var call catalog.SkillCall // other intents have none of its members
		if json.Unmarshal(args, &call) == nil && (!h.Covers(typ, call.Skill) || !meets(h.When, typ, call, args)) {
			continue
		}
		rules = append(rules, intents.HoldRule{
			ID:     "agent." + t.Agent + ".approval",
			Reason: "the agent " + t.Agent + " calls " + h.Tool + " when people have approved it",
			Roles:  h.Roles,
		})
	}
	return rules
}

// ownRules lists the router's own rules that hold an intent, whatever the policy decides: those
// of the file of its task's agent, of replays, of questions to people, and of pushes with these
// scopes.
func (d *Directory) ownRules(t *Task, tenant, typ string, args, scopes json.RawMessage) (rules []intents.HoldRule) {
	if t != nil {
		rules = t.Approvals(typ, args)
	}
	rules = append(rules, ReplayHolds(typ, args)...)
	switch typ {
	case TypeApprovalAsk:
		rules = append(rules, d.AskRule(tenant, args)...)
	case TypeRegistryPush:
		rules = append(rules, d.ReplaceRule(tenant, scopes)...)
	}
	return rules
}

// meets reports whether the arguments of a tool call match an approval's schema. An input that
// is given only by reference is not visible here, so it counts as a possible match.
func meets(when json.RawMessage, typ string, call catalog.SkillCall, args json.RawMessage) bool {
	if when == nil || call.From != "" {
		return true
	}
	if typ == "skill.call" {
		args = call.Input
		if args == nil {
			args = json.RawMessage(`{}`)
		}
	}
	schema, err := schemas.Compile(when)
	return err != nil || len(schema.ValidateBytes(args)) == 0
}
