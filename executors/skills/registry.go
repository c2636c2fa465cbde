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
)

// listingWait bounds how long all servers together are waited for.
const listingWait = 5 * time.Second

// listingAge is how long a server's list of tools is believed: a description
// that changes is noticed within this time, and at once where it is called.
const listingAge = 30 * time.Second

// hidden are a server's own discovery tools (SKL-01, SKL-02). They are no
// skills: finding and loading go by what was approved.
var hidden = map[string]bool{"find_relevant_skills": true, "load_skill": true}

// Skill is a tool of a named server.
type Skill struct {
	mcp.Manifest
	Server string
	server *server
}

// Registry knows skill servers by name. It connects when it is first asked, and
// again where a server was down. Safe for concurrent use; Close it.
type Registry struct {
	ctx     context.Context // the life of connections, which is that of the registry
	end     context.CancelFunc
	now     func() time.Time
	working sync.WaitGroup // attempts to connect, and lists that nobody waits for

	mu      sync.Mutex
	servers []*server // by name
}

// server is one entry; the fields below mu are guarded by it.
type server struct {
	name string
	open func(ctx context.Context) (Server, error)

	mu      sync.Mutex
	client  Server
	err     error         // of the last attempt to connect
	opening chan struct{} // closed when the attempt under way has ended
	skills  []Skill
	listed  time.Time
}

// NewRegistry makes an empty registry whose connections end with ctx.
func NewRegistry(ctx context.Context, now func() time.Time) *Registry {
	ctx, end := context.WithCancel(ctx)
	return &Registry{ctx: ctx, end: end, now: now}
}

// Add registers a server under a name that is not taken. open connects; it is
// called with the registry's context and again after it failed.
func (r *Registry) Add(name string, open func(ctx context.Context) (Server, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name == "" || slices.ContainsFunc(r.servers, func(s *server) bool { return s.name == name }) {
		return fmt.Errorf("skill server %q: the name is empty or taken", name)
	}
	r.servers = append(r.servers, &server{name: name, open: open})
	slices.SortFunc(r.servers, func(a, b *server) int { return cmp.Compare(a.name, b.name) })
	return nil
}

// Skills lists the skills of all servers that answer within listingWait, by
// server and in its order, also those that cannot be used (Err). The error
// names the servers that do not answer.
func (r *Registry) Skills(ctx context.Context) ([]Skill, error) {
	ctx, cancel := context.WithTimeout(ctx, listingWait)
	defer cancel()
	servers := r.all()
	lists, errs := make([][]Skill, len(servers)), make([]error, len(servers))
	var asked sync.WaitGroup
	for i, s := range servers {
		asked.Go(func() { lists[i], errs[i] = r.list(ctx, s, listingAge) })
	}
	asked.Wait()
	return slices.Concat(lists...), errors.Join(errs...)
}

func (r *Registry) all() []*server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.servers)
}

// Find looks for a skill: with this digest, else any of the name. What is not
// listed as asked for is looked up anew before it counts as missing; err says
// which servers could not be asked. It returns with the first match, so that a
// server that hangs does not hold up the skills of others.
func (r *Registry) Find(ctx context.Context, name, digest string) (s Skill, found bool, err error) {
	servers := r.all()
	for _, one := range servers {
		if skills, ok := one.known(r.now(), listingAge); ok {
			if s, found = pick(skills, name, digest); found && s.Digest() == digest {
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
	s, found = Skill{}, false
	for range servers {
		a := <-answers
		err = errors.Join(err, a.err)
		if other, ok := pick(a.skills, name, digest); ok {
			s, found = other, true
			if s.Digest() == digest {
				return s, true, nil
			}
		}
	}
	return s, found, err
}

// pick prefers the version asked for over another one of the name.
func pick(skills []Skill, name, digest string) (s Skill, found bool) {
	for _, skill := range skills {
		if skill.Name == name && (!found || skill.Digest() == digest) {
			s, found = skill, true
		}
	}
	return s, found
}

// list gives a server's tools, no older than age.
func (r *Registry) list(ctx context.Context, s *server, age time.Duration) ([]Skill, error) {
	if skills, ok := s.known(r.now(), age); ok {
		return skills, nil
	}
	client, err := r.connect(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("skill server %s: %w", s.name, err)
	}
	tools, err := client.Manifests(ctx)
	if err != nil {
		return nil, fmt.Errorf("skill server %s: %w", s.name, err)
	}
	skills := make([]Skill, 0, len(tools))
	for _, m := range tools {
		if !hidden[m.Name] {
			skills = append(skills, Skill{Manifest: m, Server: s.name, server: s})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skills, s.listed = skills, r.now()
	return skills, nil
}

// known gives the skills as last listed, if that is no longer ago than age.
func (s *server) known(now time.Time, age time.Duration) ([]Skill, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := now.Sub(s.listed)
	return s.skills, !s.listed.IsZero() && since >= 0 && since < age
}

// connect gives the server's connection. One attempt serves all that wait; it
// lives as long as the registry, so that a caller who gives up does not cut off
// a server that is slow to start.
func (r *Registry) connect(ctx context.Context, s *server) (Server, error) {
	s.mu.Lock()
	if s.client != nil {
		defer s.mu.Unlock()
		return s.client, nil
	}
	if s.opening == nil {
		s.opening = make(chan struct{})
		r.working.Go(func() {
			client, err := s.open(r.ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.client, s.err = client, err
			close(s.opening)
			s.opening = nil
		})
	}
	opened := s.opening
	s.mu.Unlock()
	select {
	case <-opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client, s.err
}

// Close ends all connections that can be closed.
func (r *Registry) Close() error {
	r.end()
	r.working.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, s := range r.servers {
		s.mu.Lock()
		if c, ok := s.client.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
		s.client, s.err, s.listed = nil, errors.New("the registry is closed"), time.Time{}
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}
