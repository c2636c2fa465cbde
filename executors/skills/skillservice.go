package skills

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// A Skill Service is a server with the tools find_relevant_skills and load_skill, which are no skills
// themselves. Among its own skills its answers decide, see mcp.FindTool. Only approved skills can be
// called, and a model reads only their approved texts, whatever the service answers.

// serviceAge is how long the list of a service is used, which asks the service for each skill. A
// skill is compared again whenever it is loaded.
const serviceAge = 5 * time.Minute

// isService reports whether the server was a Skill Service when it was last listed.
func (s *server) isService() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.service
}

// candidates puts the skills that their Skill Services find for a query, in each service's order,
// before the first so many of the ranked ones of other servers. Those of a service that does not
// answer are ranked as others are, which the notes say.
func (s *skills) candidates(ctx context.Context, o *executors.Intent, ranked []Skill, most int, query string) (out []Skill, notes []string) {
	ctx, cancel := context.WithTimeout(ctx, listingWait)
	defer cancel()
	services := s.Registry.services(o.Ticket.Actor)
	found, errs := make([][]Skill, len(services)), make([]error, len(services))
	var asked sync.WaitGroup
	for i, at := range services {
		asked.Go(func() {
			if errs[i] = at.resting(s.Now()); errs[i] == nil {
				found[i], errs[i] = s.ofService(ctx, o, at, ranked, query)
			}
		})
	}
	asked.Wait()
	decided := map[*server]bool{}
	for i, at := range services {
		if decided[at] = errs[i] == nil; errs[i] != nil {
			s.Log.LogAttrs(ctx, slog.LevelWarn, "a skill service does not find skills", slog.String("server", at.name), slog.String("error", errs[i].Error()))
			notes = append(notes, "the skill service "+at.name+" does not say which of its skills fit; they are ranked by their words")
		}
	}
	rest := slices.DeleteFunc(slices.Clone(ranked[:most]), func(x Skill) bool { return decided[x.server] })
	return append(slices.Concat(found...), rest...), notes
}

// ofService gives the pinned skills that a service finds, best first, each once. One that the last
// listing did not have is looked for.
func (s *skills) ofService(ctx context.Context, o *executors.Intent, at *server, ranked []Skill, query string) (out []Skill, err error) {
	res, err := s.ask(ctx, o, at, mcp.FindTool, map[string]string{"query": query})
	if err != nil {
		return nil, err
	}
	names, ok := mcp.Candidates(res)
	if !ok {
		return nil, errors.New("its answer has no list of candidates")
	}
	for _, name := range names {
		is := func(x Skill) bool { return x.server == at && x.Name == name }
		if slices.ContainsFunc(out, is) {
			continue
		}
		i := slices.IndexFunc(ranked, is)
		p := slices.IndexFunc(o.Ticket.Pins, func(p intents.Pin) bool { return p.Skill == at.name+"."+name })
		switch {
		case i >= 0:
			out = append(out, ranked[i])
		case p >= 0:
			skill, found, _ := s.Registry.Find(ctx, o.Ticket.Actor, o.Ticket.Pins[p])
			if found && skill.Err == nil && skill.Digest() == o.Ticket.Pins[p].Digest {
				out = append(out, skill)
			}
		}
	}
	return out, nil
}

// services of a user's tenant, as they were last listed.
func (r *Registry) services(who intents.Principal) []*server {
	return slices.DeleteFunc(r.all(who), func(s *server) bool { return !s.terms.serves(who.Tenant) || !s.isService() })
}

// know has a service list the skill of a pin.
func (s *server) know(pin intents.Pin) {
	name, ok := strings.CutPrefix(pin.Skill, s.name+".")
	if c, can := s.connected().(interface{ Know(names ...string) }); ok && can && s.isService() {
		c.Know(name)
	}
}

// loaded asks the skill's service to load it. The service may refuse, and what it gives must be what
// was approved.
func (s *skills) loaded(ctx context.Context, o *executors.Intent, skill Skill) error {
	if !skill.server.isService() {
		return nil
	}
	res, err := s.ask(ctx, o, skill.server, mcp.LoadTool, map[string]string{"skill_name": skill.Declared()})
	var e *mcp.Error
	switch {
	case err == nil:
		if now := skill.Loaded(res); now.Digest() != skill.Digest() {
			skill.server.relist()
			return executors.Fail(intents.ExecutorFailed, "manifest changed: approve the new version")
		}
		return nil
	case !errors.As(err, &e):
		return unreachable(ctx, err)
	}
	return s.judge(ctx, invocation{intent: o, skill: skill, pin: intents.Pin{Skill: skill.ID(), Effect: string(catalog.Pure)}}, e)
}

// relist has the next listing ask the server.
func (s *server) relist() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = time.Time{}
}

// ask calls a tool of a service for the user of an intent.
func (s *skills) ask(ctx context.Context, o *executors.Intent, at *server, tool string, input any) (*mcp.Result, error) {
	raw, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	client, err := s.Registry.connect(ctx, at)
	if err != nil {
		return nil, err
	}
	return client.Call(ctx, tool, raw, mcp.CallMeta{Principal: o.Ticket.Actor.UserID, RetrySafe: true})
}
