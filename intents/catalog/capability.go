package catalog

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// readers are capabilities that no intent needs, only reading and dry runs.
var readers = []string{"policy:explain", "agents:read", CapabilityCache}

// RunAgent is the capability to run an agent, without the agent's name.
const RunAgent = "agents:run"

// CapabilityTenantMemory lets a user's tasks write what everybody of the tenant reads. Only a
// capability that names the resource grants it.
const CapabilityTenantMemory = "memory:write:tenant"

// CapabilityStop lets people stop a tenant, its agents and its skill servers, and let them go on.
const CapabilityStop = "admin:stop"

// CapabilitiesFor are the capabilities that an intent of a user needs and must declare:
// declaring one that the user does not have refuses the intent.
func (r Row) CapabilitiesFor(args json.RawMessage, user string) []string {
	return append([]string{r.Needs(args, user)}, AlsoNeeds(r.Type, args)...)
}

// Needs is the capability that an intent of the row needs, with the resource where the
// arguments decide it: of one that names an agent or a workflow to run the one that names it;
// of a soul or knowledge the one that names the owner, since one's own is less than the tenant's; of a
// memory for the whole tenant the one for that; of a connection that of another user is more.
func (r Row) Needs(args json.RawMessage, user string) string {
	var a struct {
		Agent      string `json:"agent"`
		Scope      string `json:"scope"`
		UserID     string `json:"user_id"`
		Tenant     string `json:"tenant"`
		WorkflowID string `json:"workflow_id"`
	}
	switch r.Type {
	case "soul.put":
		if json.Unmarshal(args, &a) == nil && a.UserID == user {
			return r.Capability + ":own"
		}
		return r.Capability + ":tenant"
	case TypeSkillDisconnect:
		if json.Unmarshal(args, &a) != nil || a.UserID != "" && a.UserID != user || a.Tenant != "" {
			return CapabilityDisconnectOthers
		}
		return r.Capability
	case "write_memory":
		if json.Unmarshal(args, &a) != nil || a.Scope == "tenant" {
			return CapabilityTenantMemory
		}
		return r.Capability
	}
	if r.Type == "kb.index" || r.Type == "kb.remove" {
		if json.Unmarshal(args, &a) == nil && a.Scope != KnowledgeOfTenant {
			return r.Capability + ":own"
		}
		return r.Capability + ":tenant"
	}
	if r.Type == "workflow.start" && json.Unmarshal(args, &a) == nil {
		return StartRuns + ":" + a.WorkflowID
	}
	if (r.Type == "plan.open" || r.Type == intents.TypeAgentAsk) && json.Unmarshal(args, &a) == nil && a.Agent != "" {
		return RunAgent + ":" + a.Agent
	}
	return r.Capability
}

// later are capabilities of the default roles whose intents do not exist yet.
var later = []string{"logs:read", "souls:write"}

// MisspeltCapability returns what is wrong with a capability that can cover nothing
// that the catalog knows; empty: nothing is. Vendors' areas (x.<vendor>) are
// theirs: their rows may come later.
func (c *Catalog) MisspeltCapability(capability string) (reason string) {
	area, rest, _ := strings.Cut(capability, ":")
	verb, _, _ := strings.Cut(rest, ":")
	if strings.HasPrefix(area, "x.") && verb != "" {
		return ""
	}
	verbs := c.knownVerbs()
	switch {
	case verb == "":
		return "covers nothing: a capability is area:verb or area:verb:resource, * for all of a part"
	case verbs[area] == nil:
		return Like("no intent needs a capability of this area", area, slices.Collect(maps.Keys(verbs)))
	case verb != "*" && !slices.Contains(verbs[area], verb):
		return Like("no intent needs a capability with this verb", verb, verbs[area])
	}
	return ""
}

// knownVerbs by area; * has those of all.
func (c *Catalog) knownVerbs() map[string][]string {
	verbs := map[string][]string{}
	add := func(capability string) {
		parts := strings.Split(capability, ":")
		for _, area := range []string{parts[0], "*"} {
			verbs[area] = append(verbs[area], parts[1])
		}
	}
	for _, r := range c.Rows() {
		add(r.Capability)
	}
	for _, capability := range slices.Concat(readers, later, []string{CapabilityDisconnectOthers}) {
		add(capability)
	}
	return verbs
}

// Like adds to a reason the name that is most like a word, if any is.
func Like(reason, word string, names []string) string {
	if near := schemas.Nearest(word, names); near != "" {
		return reason + "; did you mean " + near + "?"
	}
	return reason
}
