package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/sandbox"
)

// serversDir holds the homes of skill servers, each in a directory of its own.
func serversDir(data string) string { return filepath.Join(data, "servers") }

// launcher starts the processes of skill servers in isolation. It is nil where the
// configuration says isolation=none: nothing else goes without.
func (n *Node) launcher(source mcp.Source) func(context.Context, mcp.Source) (*mcp.Process, error) {
	if source.NoBox {
		return nil
	}
	return func(ctx context.Context, source mcp.Source) (*mcp.Process, error) {
		p, err := n.servers.Start(n.isolated(source))
		if err != nil {
			return nil, fmt.Errorf("%w; in front of the command, isolation=none -- runs it with all that writ itself may see and do", err)
		}
		if len(p.Unseen) > 0 {
			n.cfg.Log.WarnContext(ctx, "a skill server is not given paths that its command names: declare each with files=PATH, or files=PATH:rw, in front of the command",
				slog.String("server", source.Title()), slog.String("paths", strings.Join(p.Unseen, " ")))
		}
		return &mcp.Process{Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Wait: p.Wait, Kill: p.Kill}, nil
	}
}

// isolated is the server of a source: it sees its own home in the data directory
// and nothing else of that.
func (n *Node) isolated(source mcp.Source) sandbox.Server {
	sum := sha256.Sum256([]byte(source.Server()))
	s := sandbox.Server{
		Command: source.Command, Env: source.Env, Hidden: append([]string{n.cfg.Dir}, n.cfg.Secrets...), Offline: source.NoNetwork,
		Dir: filepath.Join(n.homes, hex.EncodeToString(sum[:8])),
	}
	for _, f := range source.Files {
		s.Files = append(s.Files, sandbox.ServerFile{Path: f.Path, Write: f.Write})
	}
	return s
}
