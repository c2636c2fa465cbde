package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"aob.dev/writ/intents/catalog"
)

// The tools of a Skill Service, a server that has both: find_relevant_skills {query} and load_skill
// {skill_name}. Its answers say which skills it has, and how each is declared. What it lists beside
// them it need not load, and what it loads it need not list.
const (
	FindTool = "find_relevant_skills"
	LoadTool = "load_skill"
)

// Bounds of a listing: the skills that are loaded at a time, those that one answer names, and the
// wait for the names of all.
const (
	loadsAtOnce = 8
	maxNamed    = 100
	findTime    = 5 * time.Second
)

// Know names a skill that the server need not list. It is loaded with the next listing.
func (c *Client) Know(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if len(c.named) < MaxTools && !slices.Contains(c.named, name) {
			c.named = append(c.named, name)
		}
	}
}

// serviceSkills replaces the tools of a Skill Service by the skills that it loads. What it refuses
// to load is no skill.
func (c *Client) serviceSkills(ctx context.Context, list []*tool) ([]*tool, *Error) {
	var own, skills []*tool
	tools := 0
	for _, t := range list {
		switch t.Name {
		case FindTool, LoadTool:
			tools++
			own = append(own, t)
		case catalog.ReadSkill:
			own = append(own, t)
		default:
			skills = append(skills, t)
		}
	}
	if tools != 2 {
		return list, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	finding, end := context.WithTimeout(ctx, findTime)
	defer end()
	if found, err := c.askService(finding, FindTool, map[string]string{"query": ""}); err == nil { // else it wants words
		names, _ := Candidates(found)
		c.Know(names...)
	}
	c.mu.Lock()
	for _, name := range c.named {
		if !slices.ContainsFunc(skills, func(t *tool) bool { return t.Name == name }) {
			skills = append(skills, &tool{Manifest: Manifest{Name: name, Server: c.src.Server()}})
		}
	}
	c.mu.Unlock()
	var refused sync.Map
	var size atomic.Int64
	loading, ctx := errgroup.WithContext(ctx)
	loading.SetLimit(loadsAtOnce)
	for i, t := range skills {
		if t.Err != nil {
			continue
		}
		loading.Go(func() error {
			res, err := c.askService(ctx, LoadTool, map[string]string{"skill_name": t.Declared()})
			switch {
			case err != nil && errors.Is(err.Kind, ErrTool):
				refused.Store(t.Name, true)
				skills[i] = nil
			case err != nil:
				return err
			case size.Add(int64(len(res.Data))) > maxListing:
				return &Error{Kind: ErrTooLarge, Reason: fmt.Sprintf("the service loads more than %d bytes of skills", maxListing)}
			default:
				skills[i] = t.loaded(res)
			}
			return nil
		})
	}
	if err := loading.Wait(); err != nil {
		return nil, asError(err)
	}
	c.mu.Lock()
	c.named = slices.DeleteFunc(c.named, func(name string) bool { _, no := refused.Load(name); return no })
	c.mu.Unlock()
	skills = slices.DeleteFunc(skills, func(t *tool) bool { return t == nil })
	return append(own, skills...), nil
}

// askService calls one of a service's own tools for nobody.
func (c *Client) askService(ctx context.Context, name string, input any) (res *Result, failed *Error) {
	raw, _ := json.Marshal(input) // plain data
	req, q := c.request(name, raw, CallMeta{}), &patience{limit: c.opt.Timeout}
	var got toolResult
	if failed = c.attempt(ctx, true, func() (e *Error) {
		var forgotten bool
		if got, forgotten, e = c.send(ctx, req, q, true); forgotten {
			got, _, e = c.send(ctx, req, q, true)
		}
		return e
	}); failed != nil {
		return nil, failed
	}
	res, err := (&tool{Manifest: Manifest{Name: name}}).accept(ctx, got)
	if err != nil {
		return nil, asError(err)
	}
	return res, nil
}

// Loaded is the skill as an answer of load_skill declares it: {description, input_schema,
// output_schema, execution_mode, endpoint}, or the description alone as text. Members that the
// answer does not have stay.
func (m *Manifest) Loaded(res *Result) Manifest { return (&tool{Manifest: *m}).loaded(res).Manifest }

func (t *tool) loaded(res *Result) *tool {
	got := answerMembers(res, "skill", "manifest", "result")
	words := t.Description
	if !res.IsJSON {
		words = cmp.Or(res.Text, words)
	}
	text, _ := json.Marshal(words)
	declared, _ := json.Marshal(t.Declared())
	out := map[string]json.RawMessage{"name": declared}
	for name, from := range map[string][]json.RawMessage{
		"description":   {got["description"], text},
		"inputSchema":   {got["input_schema"], got["inputSchema"], t.InputSchema},
		"outputSchema":  {got["output_schema"], got["outputSchema"], t.OutputSchema},
		"annotations":   {got["annotations"], t.Annotations},
		"executionMode": {got["execution_mode"]},
		"endpoint":      {got["endpoint"]},
	} {
		if i := slices.IndexFunc(from, func(raw json.RawMessage) bool { return !none(raw) }); i >= 0 {
			out[name] = from[i]
		}
	}
	raw, _ := json.Marshal(out) // from JSON
	is := &tool{Manifest: Manifest{Server: t.Server}}
	if err := is.read(raw); err != nil {
		is.Err = &Error{Kind: ErrSchema, Tool: is.Name, Reason: "bad manifest", Err: err}
	}
	return is
}

// answerMembers are those of an answer that is an object, or of the object in its only member, if
// that has one of these names.
func answerMembers(res *Result, within ...string) (out map[string]json.RawMessage) {
	if !res.IsJSON || json.Unmarshal(res.Data, &out) != nil {
		return nil
	}
	for _, name := range within {
		var inner map[string]json.RawMessage
		if len(out) == 1 && json.Unmarshal(out[name], &inner) == nil && inner != nil {
			return inner
		}
	}
	return out
}

// Candidates are the skills that an answer of find_relevant_skills names, best first, by the names
// that skills have here: a list of texts, or of objects with skill_name or name, alone or as member
// candidates, skills, results or result of an object; or such objects one after another. ok: it has
// such a form.
func Candidates(res *Result) (names []string, ok bool) {
	d := json.NewDecoder(bytes.NewReader(res.Data))
	for len(names) < maxNamed {
		var v any
		if d.Decode(&v) != nil {
			return names, ok
		}
		if _, text := v.(string); !text {
			some, is := named(v)
			names, ok = append(names, some...), ok || is
		}
	}
	return names[:maxNamed], ok
}

func named(v any) (names []string, ok bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			some, _ := named(x)
			names = append(names, some...)
		}
		return names, true
	case string:
		t := &tool{}
		if raw, _ := json.Marshal(v); t.named(raw) == nil {
			return []string{t.Name}, true
		}
	case map[string]any:
		for _, member := range []string{"candidates", "skills", "results", "result", "skill_name", "name"} {
			if x, there := v[member]; there {
				return named(x)
			}
		}
	}
	return nil, false
}
