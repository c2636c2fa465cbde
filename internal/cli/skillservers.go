package cli

import (
	"fmt"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/internal/config"
)

// skillServers are the skill servers that the file describes with members, and the files of their
// secrets.
func skillServers(c config.Config, env func(string) string) (list []mcp.Source, files []string, err error) {
	places := map[string]string{}
	for _, s := range c.SkillServers {
		source, err := mcp.ParseServer(s.Node, env)
		if err != nil {
			return nil, nil, fmt.Errorf("configuration %s%w", s.Place, err)
		}
		if other, taken := places[source.Name]; taken {
			return nil, nil, fmt.Errorf("configuration %s.name: %q is the name of %s already: give each server a name of its own", s.Place, source.Name, other)
		}
		places[source.Name] = s.Place
		list, files = append(list, source), append(files, source.SecretFiles...)
	}
	return list, files, nil
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
