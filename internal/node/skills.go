package node

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/executors/skills"
)

// openSkills registers the skill servers; they are dialled when first asked. What
// cannot be read of the configuration is refused; what does not answer is not.
func (n *Node) openSkills(ctx context.Context) error {
	n.registry = skills.NewRegistry(ctx, n.cfg.Now)
	n.skills, n.servers = newSkillKeeper(n), sandbox.NewServers()
	for _, name := range slices.Sorted(maps.Keys(n.cfg.Builtin)) {
		if err := n.addSkills("builtin:"+name, mcp.Builtin(name, n.cfg.Builtin[name])); err != nil {
			return err
		}
	}
	taken := map[string]bool{}
	for i, text := range n.cfg.Skills {
		source, err := mcp.ParseSource(text)
		if err != nil {
			return err
		}
		if taken[source.Server()] {
			return fmt.Errorf("skill server %s stands twice in --skills: leave one out, or give each a name with name=… --", source.Title())
		}
		taken[source.Server()] = true
		name := source.Name
		if name == "" {
			name = fmt.Sprintf("skills-%d", i+1)
		}
		if err := n.addSkills(name, source); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) addSkills(name string, source mcp.Source) error {
	n.skills.titles[name], n.skills.effects[name] = source.Title(), source.Effects
	return n.registry.Add(name, n.dialer(source))
}

func (n *Node) dialer(source mcp.Source) func(context.Context) (skills.Server, error) {
	isolation := mcp.Isolation{
		Servers: n.servers, Homes: filepath.Join(n.cfg.Dir, "servers"), // a directory in it for each
		Hidden: append([]string{n.cfg.Dir}, n.cfg.Secrets...), Log: n.cfg.Log,
	}
	return func(ctx context.Context) (skills.Server, error) {
		c, err := mcp.Dial(ctx, source, mcp.Options{Log: n.cfg.Log, Launch: isolation.Launch(source)})
		if err != nil {
			return nil, err // not c, which as a Server would be no nil
		}
		return c, nil
	}
}
