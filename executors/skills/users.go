package skills

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
)

// userShares bound the open connections of users to one server: of all, of a tenant's, and of a user's.
var userShares = ratelimit.Shares{All: 1000, Tenant: 500, Key: 4}

// AddForUsers is Add for a server to which each user has a connection of their own. Users share
// the approved manifests alone: no connection, session, listing or kept answer.
func (r *Registry) AddForUsers(name string, terms Terms, open func(ctx context.Context, who intents.Principal) (Server, error)) error {
	return r.addForUsers(name, terms, func(ctx context.Context, who intents.Principal, _ string) (Server, error) { return open(ctx, who) }, false)
}

func (r *Registry) addForUsers(name string, terms Terms, open opener, byKey bool) error {
	if err := r.Add(name, terms, nil); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.servers {
		if s.name == name {
			s.openFor, s.byKey = open, byKey
			s.users = ratelimit.NewTable(userShares, func(own *server) { r.working.Go(func() { _ = own.close() }) })
		}
	}
	return nil
}

// own is a user's own of a server that has users. The caller holds the registry's mu.
func (r *Registry) own(s *server, who intents.Principal) *server {
	if s.openFor == nil || who.UserID == "" {
		return s
	}
	id, key := who.Tenant+"/"+who.UserID, ""
	if s.byKey {
		key, _ = r.keys.Get(callerOf(who))
		id += "/" + intents.Digest([]byte(key))
	}
	if strings.HasPrefix(who.Session, scheduled) { // it may be allowed less
		id += "/" + scheduled
	}
	own, ok := s.users.Get(id)
	if !ok {
		own = &server{name: s.name, terms: s.terms, parent: s, open: func(ctx context.Context) (Server, error) { return s.openFor(ctx, who, key) }}
		s.users.Put(id, who.Tenant, who.UserID, 1, own)
	}
	return own
}

// opener connects for a user, with the user's own key for the server if it gets that.
type opener func(ctx context.Context, who intents.Principal, key string) (Server, error)

// ofUsers are the servers of users. The caller holds the registry's mu.
func (s *server) ofUsers() (out []*server) {
	if s.users != nil {
		for _, own := range s.users.All() {
			out = append(out, own)
		}
	}
	return out
}

// scheduled begins the sessions of schedules.
const scheduled = "sched_"

// inherited are the skills that a user's server declares, as another user was last shown them.
func (s *server) inherited() []Skill {
	if s.parent == nil {
		return nil
	}
	s.parent.mu.Lock()
	defer s.parent.mu.Unlock()
	return of(s, s.parent.skills)
}

// teach has other users see the declarations. What another key has shown stays, for the operator to
// approve. The caller holds the mu of s.
func (s *server) teach() {
	if s.parent == nil {
		return
	}
	s.parent.mu.Lock()
	defer s.parent.mu.Unlock()
	all := of(s.parent, s.skills)
	for _, x := range s.parent.skills {
		if s.parent.byKey && len(all) < mcp.MaxTools && !slices.ContainsFunc(all, func(y Skill) bool { return y.Name == x.Name }) {
			all = append(all, x)
		}
	}
	s.parent.skills, s.parent.listed, s.parent.service = all, s.listed, s.service
}

// of are skills as those of another server of the same name.
func of(s *server, skills []Skill) []Skill {
	out := slices.Clone(skills)
	for i := range out {
		out[i].server = s
	}
	return out
}

// Forget ends the connections of a user to a server: the user has connected anew, or has disconnected.
func (r *Registry) Forget(who intents.Principal, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.servers {
		if s.name == name && s.users != nil {
			s.users.Remove(who.Tenant + "/" + who.UserID)
			s.users.Remove(who.Tenant + "/" + who.UserID + "/" + scheduled)
		}
	}
}

// Show lists the skills for a user who has connected, and then calls a function.
func (r *Registry) Show(who intents.Principal, then func()) {
	r.working.Go(func() {
		_, _ = r.Skills(r.ctx, who) // calls will tell
		then()
	})
}

// reopen ends a connection whose credentials the server does not take any more, so that the next call looks up
// anew who issues them.
func (r *Registry) reopen(s *server, client Server) {
	if s.parent == nil && !s.terms.Renews {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := client.(io.Closer); ok && s.client == client {
		s.client, s.listed = nil, time.Time{}
		r.working.Go(func() { _ = c.Close() })
	}
}

// Forget drops the answers that were made for a user with a server's skills.
func (c *Cache) Forget(who intents.Principal, name string) {
	c.forget(func(k cachedAnswer) bool {
		return k.tenant == who.Tenant && k.user == who.UserID && strings.HasPrefix(k.name, name+".")
	})
}
