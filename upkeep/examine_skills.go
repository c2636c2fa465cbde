package upkeep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/internal/datadir"
)

// examineWait bounds the wait for one skill server.
const examineWait = 20 * time.Second

// skills: each skill server can be reached, and declares usable tools. Servers are asked
// concurrently. Commands are started only if StartServers is set; a process gets a temporary home.
func (e Examination) skills(ctx context.Context) []Finding {
	list := make([]Finding, len(e.SkillServers)+len(e.Skills))
	var asked sync.WaitGroup
	for i := range list {
		asked.Go(func() {
			if i < len(e.SkillServers) {
				list[i] = e.server(ctx, e.SkillServers[i])
				return
			}
			source, err := mcp.ParseSource(e.Skills[i-len(e.SkillServers)])
			if err != nil {
				list[i] = wrong("skills", err, "see docs/skills.md")
				return
			}
			list[i] = e.server(ctx, source)
		})
	}
	asked.Wait()
	return list
}

func (e Examination) server(ctx context.Context, source mcp.Source) Finding {
	check := "skills:" + source.Title()
	if source.URL == "" && !e.StartServers {
		if _, err := exec.LookPath(source.Command[0]); err != nil {
			return warned(check, datadir.Rights(err).Error(), "writ up starts without it: install the program, or correct --skills")
		}
		return found(check, "a command, which was not started, so its tools and isolation were not checked (--start-servers starts it)")
	}
	if source.ForwardKey {
		return found(check, "its tools were not checked: that needs the key of a caller")
	}
	if source.OAuth.Mode != "" {
		return found(check, "its tools were not checked: that needs a token, which a running writ gets")
	}
	tools, err := e.tools(ctx, source)
	if err != nil {
		return warned(check, err.Error(), "writ up starts without it and asks it again: start it, or correct --skills")
	}
	text, broken := fmt.Sprintf("%d tools", len(tools)), 0
	for _, t := range tools {
		if t.Err != nil {
			broken++
		}
	}
	if broken > 0 {
		text += fmt.Sprintf(", %d of which cannot be used", broken)
	}
	if source.URL == "" && source.Plain {
		return warned(check, text+"; not isolated: it can read every key of the node", "leave isolation: none out where the server runs without")
	}
	return found(check, text)
}

// tools asks a server for its tools.
func (e Examination) tools(ctx context.Context, source mcp.Source) (list []mcp.Manifest, err error) {
	ctx, cancel := context.WithTimeout(ctx, examineWait)
	defer cancel()
	dir, err := os.MkdirTemp("", "writ-doctor-")
	if err != nil {
		return nil, err
	}
	isolation := &mcp.Isolation{Servers: sandbox.NewServers(), Homes: dir, Hidden: append([]string{e.Dir}, e.Secrets...)}
	defer func() {
		isolation.Servers.Close()
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	c, err := mcp.Dial(ctx, source, mcp.Options{Log: e.Log, Isolation: isolation, StartTimeout: examineWait})
	if err != nil {
		return nil, err
	}
	list, err = c.Manifests(ctx)
	return list, errors.Join(err, c.Close())
}
