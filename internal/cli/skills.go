package cli

import (
	"errors"
	"fmt"
	"net/http"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents/catalog"
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

var cacheRows = []row{
	{use: "stats", short: "Count the answers that your calls would get, and name the newest", make: asks(request[catalog.CacheStatsResult]{
		path: "/agent/cache", text: shown[catalog.CacheStatsResult]("cached.table"),
	})},
	{use: "clear SCOPE KEY", short: "Forget answers: of a run or plan (workflow), of a skill, or one (key)", make: asks(request[catalog.CacheInvalidateResult]{
		method: http.MethodPost, path: "/agent/cache/invalidate", body: cacheClear,
		text: func(_ []string, got catalog.CacheInvalidateResult) string {
			return fmt.Sprintf("%d answers removed\n", got.Removed)
		},
	})},
}

func cacheClear(c *command) func(args []string) (any, error) {
	return func(args []string) (_ any, err error) {
		switch args[0] {
		case catalog.CacheWorkflow:
			args[1], err = c.wholeID(args[1], &ownPlans)
		case catalog.CacheSkill, catalog.CacheKey:
		default:
			err = usage(errors.New("SCOPE is workflow (KEY: a run or plan), skill (KEY: its id) or key (KEY: as writ skill cache stats prints it)"))
		}
		return catalog.CacheInvalidate{Scope: args[0], Key: args[1]}, err
	}
}
