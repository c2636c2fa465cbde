package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/agents"
)

// A plan of the agent "client" is a part of the session of an MCP client: the client does the
// reasoning, and its calls are intents of the task of the plan's only step. Each comes under its
// caller's grant and has a number in the plan: two equal calls with different numbers are two
// calls, and only a call that is sent again is the same. The plan is no turn, and nobody resumes
// it.

// TypeSkillCall is the intent type of a call of a skill, and TypeResourceRead that of reading a
// resource or a prompt of a skill server.
const (
	TypeSkillCall    = "skill.call"
	TypeResourceRead = "resource.read"
)

// AsksServer reports whether intents of a type have a skill server asked, whose content is read.
func AsksServer(typ string) bool { return typ == TypeSkillCall || typ == TypeResourceRead }

// clientTypes are the intent types of its task.
var clientTypes = []string{"read_lines", TypeResourceRead, TypeSkillCall, "skill.find", "skill.load", TypeStepFinish}

// opensForClient reports whether an intent opens a plan for a client, in the required form, or
// for none.
func opensForClient(o Intent, a catalog.PlanOpen) error {
	switch {
	case a.Agent == agents.Client && a.APIKey == "":
		return illegal("/intent/args/api_key", "the plan of a client names the API key that the client came with")
	case a.APIKey == "":
		return nil
	case a.Agent != agents.Client:
		return illegal("/intent/args/api_key", "only the plan of the agent "+agents.Client+" names an API key")
	case a.Schedule != nil:
		return illegal("/intent/args/schedule", "no client calls for a schedule")
	case !o.Erased && !byClient(a.APIKey, o.Grant.Client, o.Grant.Standing):
		return intents.Refuse(intents.TaskScope, "/actor/grant", notByClient)
	}
	return nil
}

// byClient reports whether a grant was issued for a call of the client of an API key, or of an access
// token.
func byClient(key, client string, standing bool) bool {
	return !standing && intents.CallerOf(client) == key
}

const notByClient = "the plan of a client takes grants of that API key, issued for a request of it"

// Takes reports whether a task may sign intents under a grant: that of a client's plan accepts
// only grants of that client.
func (t Task) Takes(g *intents.Grant) error {
	if t.APIKey == "" || g != nil && byClient(t.APIKey, g.Act.Client, g.Standing()) {
		return nil
	}
	return intents.Refuse(intents.TaskScope, "/actor/grant", notByClient)
}

// clientOf returns what a client with an API key may do: call what is approved now and the key
// allows.
func (s *State) clientOf(key string) func(tenant, agent string) (*runs, []string, error) {
	return func(tenant, _ string) (*runs, []string, error) {
		skills, ok := s.dir.clientSkills(tenant, key)
		if !ok {
			return nil, nil, illegal("/intent/args/api_key", "the tenant has no such API key")
		}
		return &runs{APIKey: key, Types: clientTypes, Seconds: int(MaxTaskLife.Seconds())}, skills, nil
	}
}

// clientSkills are the ids of the approved skills that an API key allows, sorted.
func (d *Directory) clientSkills(tenant, key string) ([]string, bool) {
	skills := []string{}
	t := d.tenants[tenant]
	if t == nil {
		return nil, false
	}
	k, ok := t.Keys[key]
	for id := range t.Pins {
		if k.Gives(id) {
			skills = append(skills, id)
		}
	}
	slices.Sort(skills)
	return skills, ok || intents.IsCallerByToken(key)
}

// KeyGives reports whether the API key of a grant's user allows a skill, whoever calls it: the
// user's client, a task of a plan or of a workflow, a schedule, or a remote agent by its
// endpoint. A grant that names no key is not restricted by one.
func (d *Directory) KeyGives(g *intents.Grant, id string) bool {
	if g == nil || d.tenants[g.Tenant] == nil {
		return true
	}
	k, ok := d.tenants[g.Tenant].Keys[intents.KeyOfClient(g.Act.Client)]
	return !ok || k.Gives(id) // a missing key gives no role any more (RolesNow)
}

// KeyGives is Directory.KeyGives on the directory in force, which it adds to the decision's
// reads.
func (v *View) KeyGives(g *intents.Grant, id string) bool {
	return g == nil || v.directory(g.Tenant).KeyGives(g, id)
}

// CheckTool refuses the call of a skill that the API key of its grant does not allow.
func (d *Directory) CheckTool(e *intents.Envelope) error {
	if !AsksServer(e.Type()) {
		return nil
	}
	id := e.StringArg("skill")
	if pin, ok, err := d.SkillNamed(e.Principal().Tenant, id); err == nil && ok {
		id = pin.Skill
	}
	if !d.KeyGives(e.Grant(), id) {
		return forbidden("/intent/args/skill", "the API key that this was asked with does not give the skill")
	}
	return nil
}

// ClientPins are the pins of the skills that MCP clients may use with an API key, with their names
// for those clients. If a skill was approved under a name that the key gives another one, it has a
// longer name.
func (d *Directory) ClientPins(tenant, key string) []intents.Pin {
	skills, ok := d.clientSkills(tenant, key)
	if !ok {
		return []intents.Pin{}
	}
	t := d.tenants[tenant]
	k, given, pins := t.Keys[key], map[string]bool{}, make([]intents.Pin, len(skills))
	for i, id := range skills {
		pins[i] = t.Pins[id]
		given[keyName(k, pins[i])] = true
	}
	for i, pin := range pins {
		switch name := keyName(k, pin); {
		case name != "":
			pins[i].Name = name
		case given[pin.Name]:
			pins[i].Name = agents.WireName(pin.Skill, func(name string) bool { return given[name] || t.isNamed(name) })
		}
	}
	return pins
}

// keyName is the name that an API key gives a skill for MCP clients; empty: none. Of several groups the one
// with the longest pattern counts.
func keyName(k catalog.APIKey, pin intents.Pin) string {
	if name := k.Rename[pin.Skill]; name != "" {
		return name
	}
	longest := ""
	for pattern := range k.Group {
		if intents.Like(pattern, pin.Skill) && cmp.Or(cmp.Compare(len(pattern), len(longest)), cmp.Compare(pattern, longest)) > 0 {
			longest = pattern
		}
	}
	if longest == "" {
		return ""
	}
	return agents.WireWord(k.Group[longest]+"__"+pin.Name, pin.Skill)
}

// misnamed finds the names of an API key that another tool has, and those of skills that it does not give.
func (t *tenant) misnamed(k catalog.APIKey) (out []mistake) {
	for _, skill := range slices.Sorted(maps.Keys(k.Rename)) {
		var reason string
		name := k.Rename[skill]
		taken := slices.Contains(agents.ClientTools, name) || strings.HasPrefix(name, agents.AskTool)
		for other := range k.Rename {
			taken = taken || other != skill && k.Rename[other] == name
		}
		for id, pin := range t.Pins {
			taken = taken || id != skill && k.Gives(id) && cmp.Or(keyName(k, pin), pin.Name) == name
		}
		switch {
		case !k.Gives(skill):
			reason = "is no skill that the key gives"
		case taken:
			reason = "another tool of the key has the name " + name
		default:
			continue
		}
		out = append(out, mistake{"/api_key/rename/" + schemas.Escape(skill), reason, "see writ skill list for the skills; each needs a name of its own"})
	}
	return out
}

// ofClient reports whether the plan is that of a client, and open.
func (p *plan) ofClient() bool { return p.Runs != nil && p.Runs.APIKey != "" }

// numbered refuses a call of a client whose number is missing or in use.
func (v *View) numbered(p *plan, c intents.Context) error {
	n := c.Occurrence
	v.addRead(subjectNumber(p.View.TenantID, p.View.PlanID, n))
	switch {
	case n < 1 || n > catalog.MaxClientCalls:
		return illegal("/context/occurrence", fmt.Sprintf("the calls of a client have the numbers 1 to %d", catalog.MaxClientCalls))
	case p.Numbers[n]:
		return intents.Refuse(intents.ConflictIdempotency, "/context/occurrence", fmt.Sprintf("another call of the client has the number %d", n))
	}
	return nil
}

// addNumber records the number of a client's call. A call without effect frees it again.
func (p *plan) addNumber(x *openIntent, o Intent) {
	if !p.ofClient() || o.Type != TypeSkillCall {
		return
	}
	if p.Numbers == nil {
		p.Numbers = make(map[int]bool)
	}
	x.Number = o.Context.Occurrence
	p.Numbers[x.Number] = true
}

// unused is how long a client's plan may be without a task.
const unused = time.Minute

// AbandonedPlans lists the open plans of clients that will not continue and have no intent
// pending approval: their task has ended or is past its deadline, or they are older than a
// position.
func (s *State) AbandonedPlans(since int64, now time.Time) []Silent {
	return s.silentWhere(func(p *plan) bool {
		live := len(p.Tasks) == 0 && now.Before(p.View.CreatedAt.Add(unused)) ||
			slices.ContainsFunc(p.Tasks, func(t *task) bool { return !t.Closed(now) })
		return p.ofClient() && !p.waiting(1) && (!live || p.Opened < since)
	})
}
