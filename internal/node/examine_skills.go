package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/sandbox"
)

// examineWait bounds how long one skill server is waited for.
const examineWait = 20 * time.Second

// examineSkills: each skill server can be reached, or isolated and started, and
// declares tools that can be used. Servers are asked at once; a process gets a home
// that is thrown away.
func examineSkills(ctx context.Context, cfg Config) []Finding {
	list := make([]Finding, len(cfg.Skills))
	var asked sync.WaitGroup
	for i, text := range cfg.Skills {
		asked.Go(func() { list[i] = examineServer(ctx, cfg, text) })
	}
	asked.Wait()
	return list
}

func examineServer(ctx context.Context, cfg Config, text string) Finding {
	source, err := mcp.ParseSource(text)
	if err != nil {
		return wrong("skills", err, "see docs/skills.md")
	}
	check := "skills:" + source.Title()
	tools, err := tryServer(ctx, cfg, source)
	if err != nil {
		return wrong(check, err, "writ up starts without it and asks it again: start it, or correct --skills")
	}
	said, broken := fmt.Sprintf("%d tools", len(tools)), 0
	for _, t := range tools {
		if t.Err != nil {
			broken++
		}
	}
	if broken > 0 {
		said += fmt.Sprintf(", %d of which cannot be used", broken)
	}
	if source.URL == "" && source.NoBox {
		f := found(check, said+"; not isolated: it can read every key of the node")
		f.Do = "leave isolation=none out where the server runs without"
		return f
	}
	return found(check, said)
}

// tryServer asks a server for its tools.
func tryServer(ctx context.Context, cfg Config, source mcp.Source) (tools []mcp.Manifest, err error) {
	ctx, cancel := context.WithTimeout(ctx, examineWait)
	defer cancel()
	dir, err := os.MkdirTemp("", "writ-doctor-")
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, servers: sandbox.NewServers(), homes: dir}
	defer func() {
		n.servers.Close()
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	c, err := mcp.Dial(ctx, source, mcp.Options{Log: cfg.Log, Launch: n.launcher(source), StartTimeout: examineWait})
	if err != nil {
		return nil, err
	}
	tools, err = c.Manifests(ctx)
	return tools, errors.Join(err, c.Close())
}
