package cli

import (
	"fmt"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/internal/config"
)

// skillServers are the skill servers that the file describes with members.
func skillServers(c config.Config, env func(string) string) ([]mcp.Source, error) {
	var list []mcp.Source
	for _, s := range c.SkillServers {
		settings, err := s.Resolve(env)
		if err != nil {
			return nil, err
		}
		var of mcp.Settings
		for _, x := range settings {
			if err := of.Set(x.Key, x.Value); err != nil {
				return nil, fmt.Errorf("%s%s: %w", s.Place, x.Path, err)
			}
			of.Secrets = append(of.Secrets, x.Secrets...)
		}
		source, err := of.Source(s.URL, s.Command)
		if err != nil && s.URL != "" {
			return nil, fmt.Errorf("%s.url: %w", s.Place, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.command: %w", s.Place, err)
		}
		list = append(list, source)
	}
	return list, nil
}

// maxToolsListed is how many tools that cannot be used the start names, of one server.
const maxToolsListed = 5

// skillLine lists the usable tools of a server, and why the others are not.
func skillLine(s approval.Server) string {
	if s.Err != nil {
		return fmt.Sprintf("down, and asked again until it answers: %v; start it, or correct skills", s.Err)
	}
	line := fmt.Sprintf("%d of %d tools can be used", s.Usable, s.Tools)
	if s.NeedApproval > 0 {
		line += fmt.Sprintf(" (%d once people approve each call)", s.NeedApproval)
	}
	for i, x := range s.Others {
		if i == maxToolsListed {
			return line + fmt.Sprintf("; and %d more cannot", len(s.Others)-i)
		}
		line += fmt.Sprintf("; %s: %s", x.Tool, x.Why)
	}
	if len(s.Others) > 0 {
		line += "; see writ skill diff and writ skill approve"
	}
	return line
}
