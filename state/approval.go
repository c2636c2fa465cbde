package state

import (
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// Approvals are the rules by which the file of a task's agent holds an order, whatever
// the policy says of it. What is held stands in the scopes of the agent's revision.
func (t Task) Approvals(typ string, args json.RawMessage) []intents.HoldRule {
	var rules []intents.HoldRule
	for _, h := range t.Holds {
		var call catalog.SkillCall // other orders have none of its members
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

// OwnRules are the rules of the router's own that hold an order, whatever the policy says of it:
// those of the file of its task's agent, of replays, and of questions to people.
func (d *Directory) OwnRules(t *Task, tenant, typ string, args json.RawMessage) []intents.HoldRule {
	return ownRules(t, typ, args, func() []intents.HoldRule { return d.AskRule(tenant, args) })
}

// OwnRules are those of the directory in force, which a question to people relies on.
func (v *View) OwnRules(t *Task, tenant, typ string, args json.RawMessage) []intents.HoldRule {
	return ownRules(t, typ, args, func() []intents.HoldRule { return v.AskRule(tenant, args) })
}

func ownRules(t *Task, typ string, args json.RawMessage, ask func() []intents.HoldRule) (rules []intents.HoldRule) {
	if t != nil {
		rules = t.Approvals(typ, args)
	}
	rules = append(rules, ReplayHolds(typ, args)...)
	if typ == TypeApprovalAsk {
		rules = append(rules, ask()...)
	}
	return rules
}

// meets says whether the schema of an approval is met by what a tool is called with. An input
// that only a reference names is not seen here, so it may meet it.
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
