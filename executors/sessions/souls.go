package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// soul is a document of agent_souls: the tenant's, or a user's.
type soul struct {
	ID        string          `json:"id"`
	Tenant    string          `json:"tenant_id"`
	User      string          `json:"user_id,omitempty"`
	Key       string          `json:"key"`
	Persona   catalog.Persona `json:"persona"`
	Policies  json.RawMessage `json:"policies,omitempty"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// soulID is the id of a user's soul, or of the tenant's where user is empty. The two
// forms never collide.
func soulID(user string) string {
	if user == "" {
		return "tenant"
	}
	return "user:" + user
}

// soul reads the persona for the intent's user: the user's own over the
// tenant's, member by member. None stored is no failure.
func (s *sessions) soul(ctx context.Context, o *executors.Intent, _ catalog.SoulGet) (*executors.Result, error) {
	tenants, err := s.loadSoul(ctx, o, "")
	if err != nil {
		return nil, err
	}
	users, err := s.loadSoul(ctx, o, o.Ticket.Actor.UserID)
	if err != nil {
		return nil, err
	}
	switch {
	case users == nil && tenants == nil:
		return &executors.Result{Value: catalog.Soul{}}, nil
	case users == nil:
		return &executors.Result{Value: tenants.view()}, nil
	case tenants == nil:
		return &executors.Result{Value: users.view()}, nil
	}
	merged, err := merge(*tenants, *users)
	if err != nil {
		return nil, err
	}
	return &executors.Result{Value: merged.view()}, nil
}

// loadSoul reads a soul; nil: there is none.
func (s *sessions) loadSoul(ctx context.Context, o *executors.Intent, user string) (*soul, error) {
	doc, err := s.docs.Get(ctx, o.Ticket.Actor.Tenant, storage.IndexSouls, soulID(user))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, executors.Store(err)
	}
	found := new(soul)
	if err := json.Unmarshal(doc.Body, found); err != nil {
		return nil, executors.Fail(intents.ExecutorFailed, "a stored soul cannot be read")
	}
	return found, nil
}

func (s soul) view() catalog.Soul {
	return catalog.Soul{UserID: s.User, Persona: &s.Persona, Policies: s.Policies, UpdatedAt: &s.UpdatedAt}
}

// merge overwrites base's members with those of over; members that over leaves
// empty stay.
func merge(base, over soul) (soul, error) {
	out := over
	b, p := base.Persona, over.Persona
	out.Persona = catalog.Persona{
		Name: cmp.Or(p.Name, b.Name), SystemPrompt: cmp.Or(p.SystemPrompt, b.SystemPrompt),
		Tone: cmp.Or(p.Tone, b.Tone), Language: cmp.Or(p.Language, b.Language),
	}
	if base.UpdatedAt.After(over.UpdatedAt) {
		out.UpdatedAt = base.UpdatedAt
	}
	policies := map[string]json.RawMessage{}
	for _, raw := range []json.RawMessage{base.Policies, over.Policies} {
		var members map[string]json.RawMessage
		if len(raw) > 0 && json.Unmarshal(raw, &members) != nil {
			return soul{}, executors.Fail(intents.ExecutorFailed, "a stored soul cannot be read")
		}
		maps.Copy(policies, members)
	}
	if len(policies) == 0 {
		return out, nil
	}
	raw, err := json.Marshal(policies)
	out.Policies = raw
	return out, err
}

// putSoul writes the whole soul of the tenant or of a user. It requires the capability
// souls:write.
func (s *sessions) putSoul(ctx context.Context, o *executors.Intent, args catalog.SoulPut) (*executors.Result, error) {
	next := soul{
		ID: soulID(args.UserID), Tenant: o.Ticket.Actor.Tenant, User: args.UserID, Key: soulID(args.UserID),
		Persona: args.Persona, Policies: args.Policies, UpdatedAt: s.time(),
	}
	doc, err := executors.Document(next.ID, o.Ticket.Position, next)
	if err != nil {
		return nil, err
	}
	if err := s.docs.Put(ctx, next.Tenant, storage.IndexSouls, doc); err != nil {
		return nil, executors.Store(err)
	}
	return &executors.Result{Value: next.view()}, nil
}
