package skills

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
)

// listingWait bounds the wait for all servers together.
const listingWait = 5 * time.Second

// listingAge is how long a server's list of tools is used. A description that changes is
// noticed within this time, and at once when the skill is called.
const listingAge = 30 * time.Second

// Skill is a tool of a named server.
type Skill struct {
	mcp.Manifest
	Server string
	server *server
}

// ID is <server>.<tool>.
func (s Skill) ID() string { return s.Server + "." + s.Name }

// Under reports whether a pin is for some version of this skill.
func (s Skill) Under(pin intents.Pin) bool { return pin.Skill == s.ID() }

// For reports whether a tenant sees the skill.
func (s Skill) For(tenant string) bool { return s.server.terms.serves(tenant) }

// Terms are an operator's settings for a server; the zero value sets nothing.
type Terms struct {
	Tenants []string           // tenants that see its skills; nil: all
	Calls   *ratelimit.Limiter // of its tools; nil: any number
}

func (t Terms) serves(tenant string) bool {
	return t.Tenants == nil || slices.Contains(t.Tenants, tenant)
}

// Registry holds skill servers by name. It connects on first use, and again after a server was
// down. Safe for concurrent use; Close it.
type Registry struct {
	ctx     context.Context // lifetime of connections: that of the registry
	end     context.CancelFunc
	now     func() time.Time
	working sync.WaitGroup // attempts to connect, and listings in the background

	mu      sync.Mutex
	servers []*server // by name
}

// NewRegistry makes an empty registry whose connections end with ctx.
func NewRegistry(ctx context.Context, now func() time.Time) *Registry {
	ctx, end := context.WithCancel(ctx)
	return &Registry{ctx: ctx, end: end, now: now}
}

// Add registers a server under a name that is not taken. open connects; it is
// called with the registry's context and again after it failed.
func (r *Registry) Add(name string, terms Terms, open func(ctx context.Context) (Server, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name == "" || slices.ContainsFunc(r.servers, func(s *server) bool { return s.name == name }) {
		return fmt.Errorf("skill server %q: the name is empty or taken: give each server a name of its own, in the configuration file and in --skills", name)
	}
	r.servers = append(r.servers, &server{name: name, terms: terms, open: open})
	slices.SortFunc(r.servers, func(a, b *server) int { return cmp.Compare(a.name, b.name) })
	return nil
}

// Skills lists the skills of all servers that answer within listingWait, by server and
// in its order, including those that cannot be used (Err). The error names the servers
// that do not answer. One that failed is asked again after a pause, which grows, so
// that it does not delay every listing.
func (r *Registry) Skills(ctx context.Context) ([]Skill, error) {
	ctx, cancel := context.WithTimeout(ctx, listingWait)
	defer cancel()
	servers := r.all()
	lists, errs := make([][]Skill, len(servers)), make([]error, len(servers))
	var asked sync.WaitGroup
	for i, s := range servers {
		asked.Go(func() {
			if errs[i] = s.resting(r.now()); errs[i] == nil {
				lists[i], errs[i] = r.list(ctx, s, listingAge)
			}
		})
	}
	asked.Wait()
	return slices.Concat(lists...), errors.Join(errs...)
}

// firstListing is how long the first listing of a server that takes connections is waited for.
const firstListing = 30 * time.Second

// Await has all servers listed for the first time. It does not wait for one that takes no
// connection, and for long for one that is slow to list.
func (r *Registry) Await(ctx context.Context) {
	var asked sync.WaitGroup
	for _, s := range r.all() {
		asked.Go(func() {
			soon, cancel := context.WithTimeout(ctx, listingWait)
			defer cancel()
			if _, err := r.connect(soon, s); err != nil {
				return
			}
			ctx, cancel := context.WithTimeout(ctx, firstListing)
			defer cancel()
			_, _ = r.list(ctx, s, listingAge) // its health has the error
		})
	}
	asked.Wait()
}

func (r *Registry) all() []*server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.servers)
}

// Find looks on a tenant's servers for the skill of a pin in the version that was
// approved, else in any. Before a skill counts as missing, all of these servers are listed
// again; err names those that could not be asked. Find returns with the first match, so
// that a server that hangs does not delay the skills of others.
func (r *Registry) Find(ctx context.Context, tenant string, pin intents.Pin) (s Skill, found bool, err error) {
	servers := slices.DeleteFunc(r.all(), func(s *server) bool { return !s.terms.serves(tenant) })
	for _, one := range servers {
		if skills, ok := one.known(r.now(), listingAge); ok {
			if s, approved, _ := pick(skills, pin); approved {
				return s, true, nil
			}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		skills []Skill
		err    error
	}
	answers := make(chan answer, len(servers))
	for _, one := range servers {
		r.working.Go(func() {
			skills, err := r.list(ctx, one, 0)
			answers <- answer{skills, err}
		})
	}
	for range servers {
		a := <-answers
		err = errors.Join(err, a.err)
		other, approved, ok := pick(a.skills, pin)
		if approved {
			return other, true, nil
		}
		if ok {
			s, found = other, true
		}
	}
	return s, found, err
}

// pick prefers the approved version, whose digest identifies its server, to another version of the
// skill.
func pick(skills []Skill, pin intents.Pin) (s Skill, approved, found bool) {
	for _, skill := range skills { // first those of the name: each digest is made anew
		if skill.Under(pin) && skill.Digest() == pin.Digest {
			return skill, true, true
		}
	}
	for _, skill := range skills {
		switch {
		case skill.Under(pin):
			if !found {
				s, found = skill, true
			}
		case skill.Digest() == pin.Digest:
			return skill, true, true
		}
	}
	return s, false, found
}

// Close ends all connections that can be closed.
func (r *Registry) Close() error {
	r.end()
	r.working.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := make([]error, len(r.servers))
	var closing sync.WaitGroup // side by side: each may take a moment to end
	for i, s := range r.servers {
		closing.Go(func() { errs[i] = s.close() })
	}
	closing.Wait()
	return errors.Join(errs...)
}

// close ends the connection, if there is one.
func (s *server) close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.client.(io.Closer); ok {
		err = c.Close()
	}
	s.client, s.listed = nil, time.Time{}
	return err
}
