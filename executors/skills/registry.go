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

	"golang.org/x/sync/singleflight"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/ratelimit"
)

// listingWait bounds the wait for all servers together.
const listingWait = 5 * time.Second

// listingAge is how long a server's list of tools is used. A description that changes is
// noticed within this time, and at once when the skill is called.
const listingAge = 30 * time.Second

// Registry holds skill servers by name. It connects on first use, and again after a server was
// down. Safe for concurrent use; Close it.
type Registry struct {
	ctx     context.Context // lifetime of connections: that of the registry
	end     context.CancelFunc
	now     func() time.Time
	keys    *callerKeys
	working sync.WaitGroup // attempts to connect, and listings in the background

	mu      sync.Mutex
	servers []*server // by name
}

// NewRegistry makes an empty registry whose connections end with ctx.
func NewRegistry(ctx context.Context, now func() time.Time) *Registry {
	ctx, end := context.WithCancel(ctx)
	return &Registry{ctx: ctx, end: end, now: now, keys: newCallerKeys(now)}
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

// Skills lists the skills of all servers that answer a user within listingWait, by server and
// in its order, including those that cannot be used (Err). The error names the servers
// that do not answer. One that failed is asked again after a pause, which grows, so
// that it does not delay every listing.
func (r *Registry) Skills(ctx context.Context, who intents.Principal) ([]Skill, error) {
	ctx, cancel := context.WithTimeout(ctx, listingWait)
	defer cancel()
	servers := r.all(who)
	lists, errs := make([][]Skill, len(servers)), make([]error, len(servers))
	var asked sync.WaitGroup
	for i, s := range servers {
		asked.Go(func() {
			if errs[i] = s.resting(r.now()); errs[i] == nil {
				lists[i], errs[i] = r.list(ctx, s, listingAge)
			}
			if known := s.inherited(); errs[i] != nil && len(known) > 0 {
				lists[i], errs[i] = known, nil
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
	for _, s := range r.all(intents.Principal{}) {
		if s.openFor != nil {
			continue
		}
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

// all servers, those of each user as the user's own.
func (r *Registry) all(who intents.Principal) []*server {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.servers)
	for i, s := range out {
		out[i] = r.own(s, who)
	}
	return out
}

// Find looks on the servers of a user's tenant for the skill of a pin in the version that was
// approved, else in any. Before a skill counts as missing, all of these servers are listed
// again; err names those that could not be asked. Find returns with the first match, so
// that a server that hangs does not delay the skills of others.
func (r *Registry) Find(ctx context.Context, who intents.Principal, pin intents.Pin) (s Skill, found bool, err error) {
	servers := slices.DeleteFunc(r.all(who), func(s *server) bool { return !s.terms.serves(who.Tenant) })
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
			one.know(pin)
			skills, err := r.list(ctx, one, 0)
			if err != nil {
				skills = one.inherited()
			}
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
		for _, own := range s.ofUsers() {
			closing.Go(func() { _ = own.close() })
		}
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

// A server that does not answer is left alone for a while before it is listed again,
// unless an intent needs it.
const (
	shortestRest = time.Second
	longestRest  = time.Minute
	maxDoublings = 6
)

// ErrResting reports that a server failed a moment ago and was not asked.
var ErrResting = errors.New("it did not answer")

// server is one entry; the fields below mu are guarded by it.
type server struct {
	name  string
	terms Terms
	open  func(ctx context.Context) (Server, error)

	// Where each user has a connection of their own, a server stands for all of them and is not asked itself. Each
	// user's is a server, too.
	openFor opener
	byKey   bool                      // each has one for each key that the user sends
	users   *ratelimit.Table[*server] // guarded by the registry's mu
	parent  *server

	listing, opening singleflight.Group // callers share one listing, and one attempt to connect

	mu           sync.Mutex
	service      bool      // it is a Skill Service
	listingSince time.Time // since when a listing is under way; zero: none is
	client       Server
	skills       []Skill
	listed       time.Time
	problem      error         // of the last listing
	failures     int           // listings that failed in a row, up to maxDoublings
	until        time.Time     // it is not listed before
	rest         time.Duration // until is never further away, should the clock be set back
}

// list returns a server's tools, no older than age. Callers share a listing under way, which
// continues when a caller gives up, so that a slow server is eventually listed.
func (r *Registry) list(ctx context.Context, s *server, age time.Duration) ([]Skill, error) {
	skills, ok := s.known(r.now(), age)
	if ok || s.openFor != nil {
		return skills, nil
	}
	done := s.listing.DoChan("", func() (any, error) {
		r.working.Add(1)
		defer r.working.Done()
		return r.listNow(s)
	})
	select {
	case got := <-done:
		skills, _ := got.Val.([]Skill)
		return skills, got.Err
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.Canceled) { // else the caller gave up
			s.late(ctx.Err())
		}
		return nil, fmt.Errorf("skill server %s: %w", s.name, ctx.Err())
	}
}

// listNow asks the server.
func (r *Registry) listNow(s *server) ([]Skill, error) {
	s.begins(r.now())
	tools, err := r.tools(r.ctx, s)
	if err != nil {
		s.failed(err, r.now())
		return nil, fmt.Errorf("skill server %s: %w", s.name, err)
	}
	skills := make([]Skill, 0, len(tools))
	own := 0
	for _, m := range tools {
		switch m.Name {
		case mcp.FindTool, mcp.LoadTool:
			own++
		default:
			skills = append(skills, Skill{Manifest: m, Server: s.name, server: s})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.service, s.listingSince = own == 2, time.Time{}
	s.skills, s.listed, s.failures, s.problem = skills, r.now(), 0, nil
	s.teach()
	return skills, nil
}

// begins notes that a listing is under way.
func (s *server) begins(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listingSince = now
}

// late notes that a listing under way has not ended in time.
func (s *server) late(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listingSince.IsZero() {
		s.problem = err
	}
}

func (r *Registry) tools(ctx context.Context, s *server) ([]mcp.Manifest, error) {
	client, err := r.connect(ctx, s)
	if err != nil {
		return nil, err
	}
	return client.Manifests(ctx)
}

// failed leaves the server alone for a while, each time twice as long as before.
func (s *server) failed(err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem, s.listingSince = err, time.Time{}
	s.rest = min(shortestRest<<s.failures, longestRest)
	if s.failures < maxDoublings {
		s.failures++
	}
	s.until = now.Add(s.rest)
}

// resting is an error while a server that failed is left alone, or has been listing for so long
// that nobody waits for it.
func (s *server) resting(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := now.Sub(s.listingSince); !s.listingSince.IsZero() && since >= listingWait {
		return fmt.Errorf("skill server %s: %w", s.name, context.DeadlineExceeded)
	}
	left := s.until.Sub(now)
	if s.failures == 0 || left <= 0 || left > s.rest {
		return nil
	}
	return fmt.Errorf("skill server %s: %w, and is asked again in %s", s.name, ErrResting, clock.Words(left))
}

// known gives the skills as last listed, if the list is no older than age.
func (s *server) known(now time.Time, age time.Duration) ([]Skill, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.service && age > 0 {
		age = serviceAge
	}
	since := now.Sub(s.listed)
	return s.skills, !s.listed.IsZero() && since >= 0 && since < age
}

// connect returns the server's connection. One attempt serves all callers that wait. It
// lives as long as the registry, so that a caller who gives up does not end the
// connection to a server that is slow to start.
func (r *Registry) connect(ctx context.Context, s *server) (Server, error) {
	if client := s.connected(); client != nil {
		return client, nil
	}
	done := s.opening.DoChan("", func() (any, error) {
		r.working.Add(1)
		defer r.working.Done()
		if client, ended := s.connected(), r.ctx.Err(); client != nil || ended != nil { // meanwhile
			return client, ended
		}
		client, err := s.open(r.ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.client = client
		return client, err
	})
	select {
	case got := <-done:
		client, _ := got.Val.(Server)
		return client, got.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *server) connected() Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// Health is the result of the last listing of a server's tools.
type Health struct {
	Name  string
	Tools int   // in its last list
	Err   error // nil: it answered, or was never asked
}

// Health of all servers, by name.
func (r *Registry) Health() []Health {
	var out []Health
	for _, s := range r.all(intents.Principal{}) {
		s.mu.Lock()
		out = append(out, Health{Name: s.name, Tools: len(s.skills), Err: s.problem})
		s.mu.Unlock()
	}
	return out
}
