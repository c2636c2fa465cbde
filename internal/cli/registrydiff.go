package cli

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	textdiff "github.com/rogpeppe/go-internal/diff"

	"aob.dev/writ/state/agents"
	"aob.dev/writ/state/workflows"
)

// right is one thing that an agent may do, or a bound to it.
type right struct{ about, value string }

// rights are a scope, one thing after the other.
func rights(s agents.Scope) []right {
	var all []right
	add := func(about string, what ...string) {
		for _, w := range what {
			all = append(all, right{about, w})
		}
	}
	add("intent", s.Types...)
	add("skill", s.Skills...)
	for _, server := range s.Servers {
		add("skill", server+".*")
	}
	for _, h := range s.Holds {
		what := h.Tool + " until one of " + strings.Join(h.Roles, ", ") + " approves"
		if h.When != nil {
			what += ", when the arguments match " + string(h.When)
		}
		add("hold", what)
	}
	add("sub-agent", s.SubAgents...)
	if s.AskAny {
		add("sub-agent", "every local agent")
	}
	l := s.Limits
	add("limit", fmt.Sprintf("%d requests", l.Requests), fmt.Sprintf("%d tokens", l.Tokens), fmt.Sprintf("%d seconds", l.Seconds),
		fmt.Sprintf("%d seconds for an agent that it asks", l.AskSeconds), fmt.Sprintf("%d agents asked at once", l.FanOut))
	if g := s.Routing; g != nil && g.Default {
		add("routing", "default")
	} else if g != nil {
		add("routing", fmt.Sprintf("from confidence %g", g.Threshold))
	}
	if s.Routing != nil && s.Routing.Clarify {
		add("routing", "asks the user when unsure")
	}
	if s.Remote {
		add("remote", "a server of its own answers")
	}
	return all
}

// flowRights are the rights that the nodes of a workflow use.
func flowRights(g *workflows.Graph) (all []right) {
	for _, n := range g.Nodes {
		what := n.ID
		if n.Type == workflows.Function || n.Type == workflows.Agent {
			what += ": " + n.Fn
		}
		all = append(all, right{n.Type, what})
	}
	return append(all, right{"limit", fmt.Sprintf("%d days", g.MaxDays)})
}

// changedAgent is the difference between two definitions of an agent.
type changedAgent struct {
	Name   string   `json:"name"`
	Gained []string `json:"gained"` // rights
	Lost   []string `json:"lost"`
	Diff   string   `json:"diff"` // of the files
}

// registryChanges are the differences between two registries.
type registryChanges struct {
	Added   []changedAgent `json:"added"`
	Removed []changedAgent `json:"removed"`
	Changed []changedAgent `json:"changed"`
	Files   []string       `json:"files"` // other files that differ, by path
}

func registryDiff(c *command) {
	c.answer = func(args []string) (answer, error) {
		before, err := c.soundRegistry(args[0])
		if err != nil {
			return answer{}, err
		}
		after, err := c.soundRegistry(args[1])
		if err != nil {
			return answer{}, err
		}
		changes := changesOf(before, after)
		text := changes.String()
		return answer{data: changes, text: text, end: unless(text == "", "they differ")}, nil
	}
}

// registrySide is one of two registries that are compared.
type registrySide struct {
	rights map[string][]right // by agent; also of workflows
	files  map[string][]byte  // of agents and workflows
	others map[string][]byte  // by path
}

func sideOf(r *agents.Revision) registrySide {
	s := registrySide{map[string][]right{}, map[string][]byte{}, maps.Clone(r.Files())}
	for _, scope := range r.Scopes().Agents {
		s.rights[scope.Name] = rights(scope)
	}
	for _, d := range r.Agents {
		s.files[d.Name] = d.Text
		delete(s.others, d.File)
	}
	for _, d := range r.Workflows {
		name := "workflow " + d.WorkflowID
		s.rights[name], s.files[name] = flowRights(d.Graph), d.Text
		delete(s.others, d.File)
	}
	return s
}

// differing are the keys of files that only one has, or that differ.
func differing(a, b map[string][]byte) []string {
	names := map[string]bool{}
	for _, pair := range [][2]map[string][]byte{{a, b}, {b, a}} {
		for name, text := range pair[0] {
			other, ok := pair[1][name]
			names[name] = names[name] || !ok || !bytes.Equal(text, other)
		}
	}
	maps.DeleteFunc(names, func(_ string, differs bool) bool { return !differs })
	return append([]string{}, slices.Sorted(maps.Keys(names))...)
}

func changesOf(before, after *agents.Revision) registryChanges {
	a, b := sideOf(before), sideOf(after)
	out := registryChanges{Added: []changedAgent{}, Removed: []changedAgent{}, Changed: []changedAgent{}, Files: differing(a.others, b.others)}
	for _, name := range differing(a.files, b.files) {
		had, was := a.rights[name]
		has, is := b.rights[name]
		list := &out.Changed
		switch {
		case !was:
			list = &out.Added
		case !is:
			list = &out.Removed
		}
		*list = append(*list, changedAgent{
			Name: name, Gained: lacking(has, had), Lost: lacking(had, has), Diff: string(textdiff.Diff(name, a.files[name], name, b.files[name])),
		})
	}
	return out
}

// lacking are the rights of one that are none of the other's.
func lacking(one, other []right) []string {
	out := []string{}
	for _, r := range one {
		if !slices.Contains(other, r) {
			out = append(out, r.about+" "+r.value)
		}
	}
	return out
}

// String lists new rights of the agents first.
func (r registryChanges) String() string { return printable(render("changes", r)) }
