package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"aob.dev/writ/executors/sandbox"
)

// Isolation starts the processes of skill servers so that each sees its own home
// and nothing else of this machine's secrets.
type Isolation struct {
	Servers *sandbox.Servers
	Homes   string   // directory of their homes
	Hidden  []string // files and directories that none of them sees
	Log     *slog.Logger
}

// Launch is Options.Launch for a source. It is nil only where the configuration
// says isolation=none.
func (i Isolation) Launch(source Source) func(context.Context, Source) (*Process, error) {
	if source.NoBox {
		return nil
	}
	return func(ctx context.Context, source Source) (*Process, error) {
		p, err := i.Servers.Start(i.server(source))
		if err != nil {
			return nil, fmt.Errorf("%w; in front of the command, isolation=none -- runs it with all that writ itself may see and do", err)
		}
		if len(p.Unseen) > 0 {
			i.Log.WarnContext(ctx, "a skill server is not given paths that its command names: declare each with files=PATH, or files=PATH:rw, in front of the command",
				slog.String("server", source.Title()), slog.String("paths", strings.Join(p.Unseen, " ")))
		}
		return &Process{Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Wait: p.Wait, Kill: p.Kill}, nil
	}
}

// server of a source: it sees its own home.
func (i Isolation) server(source Source) sandbox.Server {
	sum := sha256.Sum256([]byte(source.Server()))
	return sandbox.Server{
		Command: source.Command, Env: source.Env, Files: source.Files, Hidden: i.Hidden, Offline: source.NoNetwork,
		Dir: filepath.Join(i.Homes, hex.EncodeToString(sum[:8])),
	}
}
