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

// Registry knows skill servers by name. It connects when it is first asked, and
// again where a server was down. Safe for concurrent use; Close it.
type Registry struct {
	ctx     context.Context // the life of connections, which is that of the registry
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

func (r *Registry) all() []*server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.servers)
}

// Find looks for a skill with this digest, else for any of the name. Before a skill
// counts as missing, all servers are listed again; err names those that could not be
// asked. Find returns with the first match, so that a server that hangs does not delay
// the skills of others.
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
