package skills

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/internal/clock"
)

// A server that does not answer is left alone for a while before it is listed again,
// unless an intent needs it.
const (
	shortestRest = time.Second
	longestRest  = time.Minute
	maxDoublings = 6
)

// ErrResting reports that a server failed a moment ago and was not asked.
var ErrResting = errors.New("it did not answer")

// maxID bounds the id of a skill, in characters.
const maxID = 128

// server is one entry; the fields below mu are guarded by it.
type server struct {
	name  string
	terms Terms
	open  func(ctx context.Context) (Server, error)

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
	if skills, ok := s.known(r.now(), age); ok {
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
		case findTool, loadTool:
			own++
		default:
			if len(s.name)+1+len(m.Name) > maxID {
				m.Err = fmt.Errorf("%s.%s: %w: its id has more than %d characters", s.name, m.Name, mcp.ErrSchema, maxID)
			}
			skills = append(skills, Skill{Manifest: m, Server: s.name, server: s})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.service, s.listingSince = own == 2, time.Time{}
	s.skills, s.listed, s.failures, s.problem = skills, r.now(), 0, nil
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
	for _, s := range r.all() {
		s.mu.Lock()
		out = append(out, Health{Name: s.name, Tools: len(s.skills), Err: s.problem})
		s.mu.Unlock()
	}
	return out
}
