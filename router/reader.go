package router

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

// Reader is a person who reads, with the person's current rights. Policies do not judge reads.
type Reader struct {
	Grant intents.Grant // with the roles that are still in force
	caps  []string
	dir   *state.Directory
}

// Thing is something that a person may read.
type Thing struct {
	Owner  string   // user
	Plan   string   // that it belongs to; empty: none
	Skills []string // that it shows the use of
	Shown  []string // capabilities that show it beside that of overseeing
}

// Reader opens the grant of a read: one for reading, of a tenant, API key and user that are in
// force, whose roles cover the capability that the route needs; empty: none. Of the grant's roles
// only those count that key and user still give, so a role that was revoked a minute ago reads
// nothing.
func (r *Router) Reader(token, capability string) (*Reader, error) {
	v := r.state.View()
	g, err := intents.OpenGrant(token, r.state.Origin(), v, r.cfg.Now())
	if err != nil {
		return nil, err
	}
	if !g.Reads() {
		return nil, intents.Refuse(intents.GrantInvalid, "", "a grant of intents reads nothing: send an API key (X-Api-Key), or the read_grant of POST /v1/grants")
	}
	if before := v.RevokedBefore(g.Tenant, g.Subject); !before.IsZero() && time.Unix(g.IssuedAt, 0).Before(before) {
		return nil, intents.Refuse(intents.GrantInvalid, "", "grant is revoked")
	}
	x := &Reader{Grant: g, dir: r.state.Directory()}
	roles, disabled := x.dir.RolesNow(g.Tenant, g.Subject, intents.KeyOfClient(g.Act.Client), g.Roles)
	if disabled {
		return nil, intents.Refuse(intents.RBACForbidden, "", "the user or the API key is not there any more")
	}
	x.Grant.Roles = roles
	x.caps, _ = x.dir.Capabilities(g.Tenant, roles)
	if capability != "" && !x.May(capability) {
		return nil, intents.Refuse(intents.RBACForbidden, "", "the actor lacks the capability "+capability)
	}
	return x, nil
}

// May reports whether the reader has a capability.
func (x *Reader) May(capability string) bool { return state.Covers(x.caps, capability) }

// Oversees reports whether the reader may read what belongs to other users.
func (x *Reader) Oversees() bool { return x.May(catalog.CapabilityAudit) }

// Sees reports whether the reader may read a thing: an own one, or one that a capability shows.
// A standing grant reads its plan only, and a grant of an API key with tools nothing that shows
// others.
func (x *Reader) Sees(t Thing) bool {
	g := x.Grant
	switch {
	case g.Standing() && !g.Serves(intents.Context{PlanID: t.Plan, RunID: t.Plan}):
		return false
	case !x.gives(t.Skills):
		return false
	}
	return t.Owner == g.Subject || slices.ContainsFunc(append([]string{catalog.CapabilityAudit}, t.Shown...), x.May)
}

func (x *Reader) gives(skills []string) bool {
	for _, id := range skills {
		if pin, ok, err := x.dir.SkillNamed(x.Grant.Tenant, id); err == nil && ok {
			id = pin.Skill
		}
		if !x.dir.KeyGives(&x.Grant, id) {
			return false
		}
	}
	return true
}

// SkillsOf are the skills that a recorded intent calls.
func (r *Router) SkillsOf(ctx context.Context, position int64) ([]string, error) {
	rec, err := r.cfg.Records.Get(ctx, position)
	if err != nil {
		return nil, err
	}
	o, err := state.ReadIntent(rec)
	if err != nil {
		return nil, err
	}
	if len(o.Args) == 0 { // erased
		return nil, nil
	}
	var a catalog.SkillCall
	if err := json.Unmarshal(o.Args, &a); err != nil {
		return nil, err
	}
	return []string{a.Skill}, nil
}
