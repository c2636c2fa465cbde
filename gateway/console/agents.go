package console

import (
	"maps"
	"slices"

	"aob.dev/writ/gateway"
	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// agentsPage shows the agents and the skills that they may call.
type agentsPage struct {
	gateway.Deep
	Revisions []changedRevision
	Skills    []consoleapi.Skill
}

// changedRevision is a revision with its changes.
type changedRevision struct {
	consoleapi.Revision
	Names []string
	Diff  []diffLine
}

func (*Console) agents(q *request) (any, error) {
	var p agentsPage
	if err := q.get("/health/deep", &p.Deep); err != nil {
		return nil, err
	}
	var all []consoleapi.Revision
	if err := q.get(consoleapi.Path+"agents", &all); err != nil {
		return nil, err
	}
	for _, r := range all {
		x := changedRevision{Revision: r, Names: slices.Sorted(maps.Keys(r.Files))}
		both := maps.Clone(r.Files)
		maps.Copy(both, r.Before)
		for _, name := range slices.Sorted(maps.Keys(both)) {
			if r.Before != nil && r.Before[name] != r.Files[name] {
				x.Diff = append(x.Diff, diff("before/"+name, r.Before[name], "now/"+name, r.Files[name])...)
			}
		}
		p.Revisions = append(p.Revisions, x)
	}
	err := q.get(consoleapi.Path+"skills", &p.Skills)
	return p, err
}

// skillPage is a skill with the version that waits for approval, if any.
type skillPage struct {
	consoleapi.Skill
	Effect  catalog.Effect // of the approval, otherwise of the hints
	Effects []catalog.Effect
	Diff    []diffLine

	Destructive string // of the approval, otherwise of the hints
	Destroys    []struct{ Value, Text string }
}

// destroys are the choices for whether a call may be destructive.
var destroys = []struct{ Value, Text string }{{"", "if it does more than read"}, {intents.Yes, "yes"}, {intents.No, "no"}}

func (q *request) skillNamed() (p skillPage, err error) {
	var all []consoleapi.Skill
	if err := q.get(consoleapi.Path+"skills", &all); err != nil {
		return p, err
	}
	i := slices.IndexFunc(all, func(s consoleapi.Skill) bool { return s.Name == q.PathValue("name") })
	if i < 0 {
		return p, problem.New(intents.NotFound, "", "no skill server declares it, and nothing is approved under this name")
	}
	p = skillPage{Skill: all[i], Effects: []catalog.Effect{catalog.Pure, catalog.Idempotent, catalog.Once}, Destroys: destroys}
	if p.Now != nil {
		p.Effect, p.Destructive = p.Now.Effect, p.Now.Destructive
	}
	if p.Pin != nil {
		p.Effect = catalog.Effect(p.Pin.Effect)
		if p.Destructive != intents.Yes {
			p.Destructive = p.Pin.Destructive
		}
	}
	if p.Before != nil && p.Now != nil {
		p.Diff = diff("approved", p.Before.Text, "declared now", p.Now.Text)
	}
	return p, nil
}

func (*Console) skill(q *request) (any, error) { return q.skillNamed() }

// approveSkill sends the approval of exactly the version that the page has shown.
func (c *Console) approveSkill(q *request) (any, error) {
	p, err := q.skillNamed()
	if err != nil {
		return nil, err
	}
	if p.Now == nil || p.Now.Digest != q.PostFormValue("digest") {
		return nil, problem.New(intents.StaleWrite, "", "the server declares another version by now: look at the page again")
	}
	a := catalog.SkillApprove{Skill: p.Name, Digest: p.Now.Digest, Effect: catalog.Effect(q.PostFormValue("effect")), Destructive: q.PostFormValue("destructive"), Trusted: p.Now.Trusted, OpenWorld: p.Now.OpenWorld, Server: p.Now.Server, InputSchema: p.Now.InputSchema}
	if p.Pin != nil && a.Effect == catalog.Pure {
		a.CacheSeconds, a.Shared = p.Pin.CacheSeconds, p.Pin.Shared
	}
	if err := q.post("/v1/skills", a, nil); err != nil {
		return nil, err
	}
	return q.see("/console/agents", "You approved "+p.Name+" in its version "+short(p.Now.Digest)+".")
}
