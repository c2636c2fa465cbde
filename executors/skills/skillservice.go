package skills

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// The tools of a Skill Service, a server that has both. They are not skills: writ uses them to ask
// the service for its skills. Only approved skills can be called, and a model reads only their
// approved texts, whatever the service answers.
const (
	findTool = "find_relevant_skills"
	loadTool = "load_skill"
)

// isService reports whether the server was a Skill Service when it was last listed.
func (s *server) isService() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.service
}

// preferred puts the skills that their Skill Services find for a query, in each service's order,
// before the first so many of the ranked ones. A service that does not answer changes nothing.
func (s *skills) preferred(ctx context.Context, o *executors.Intent, ranked []Skill, most int, query string) []Skill {
	ctx, cancel := context.WithTimeout(ctx, listingWait)
	defer cancel()
	asked := map[*server]bool{}
	var first []Skill
	for _, one := range ranked {
		if asked[one.server] || !one.server.isService() {
			continue
		}
		asked[one.server] = true
		names, err := s.askService(ctx, o, one.server, query)
		if err != nil {
			s.Log.LogAttrs(ctx, slog.LevelWarn, "a skill service does not find skills", slog.String("server", one.Server), slog.String("error", err.Error()))
		}
		for _, name := range names {
			if i := slices.IndexFunc(ranked, func(x Skill) bool { return x.server == one.server && x.Name == name }); i >= 0 {
				first = append(first, ranked[i])
			}
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(append(first, ranked[:most]...), func(x Skill) bool {
		again := seen[x.ID()]
		seen[x.ID()] = true
		return again
	})
}

// askService gives the tools that a service finds, best first.
func (s *skills) askService(ctx context.Context, o *executors.Intent, at *server, query string) (names []string, err error) {
	res, err := s.ask(ctx, o, at, findTool, map[string]string{"query": query})
	if err != nil {
		return nil, err
	}
	var found struct {
		Candidates []struct{ Name string } `json:"candidates"`
		Skills     []struct{ Name string } `json:"skills"`
	}
	if err := json.Unmarshal(res.Data, &found); err != nil {
		return nil, err
	}
	for _, x := range append(found.Candidates, found.Skills...) {
		names = append(names, x.Name)
	}
	return names, nil
}

// loaded asks the skill's service to load it; the service may refuse.
func (s *skills) loaded(ctx context.Context, o *executors.Intent, skill Skill) error {
	if !skill.server.isService() {
		return nil
	}
	_, err := s.ask(ctx, o, skill.server, loadTool, map[string]string{"skill_name": skill.Name})
	var e *mcp.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return unreachable(ctx, err)
	}
	return s.judge(ctx, invocation{intent: o, skill: skill, pin: intents.Pin{Skill: skill.ID(), Effect: string(catalog.Pure)}}, e)
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
