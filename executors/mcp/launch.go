package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"aob.dev/writ/executors/sandbox"
)

// Isolation starts the processes of skill servers so that each sees its own home
// and nothing else of this machine's secrets.
type Isolation struct {
	Servers *sandbox.Servers
	Homes   string   // directory of their homes
	Hidden  []string // files and directories that none of them sees
}

// launch starts the process of a source that is a command. Only a source with
// isolation: none becomes a plain child, where the options have an Isolation.
func (c *Client) launch(ctx context.Context) (*sandbox.ServerProcess, error) {
	if c.opt.Isolation == nil || c.src.Plain {
		return plain(ctx, c.src)
	}
	p, err := c.opt.Isolation.Servers.Start(c.opt.Isolation.server(c.src))
	if err != nil {
		return nil, fmt.Errorf("%w; isolation: none runs it with all that writ itself may see and do", err)
	}
	if len(p.Invisible) > 0 {
		c.log.WarnContext(ctx, "a skill server is not given paths that its command names: declare each under files",
			slog.String("server", c.src.Title()), slog.String("paths", strings.Join(p.Invisible, " ")))
	}
	for _, why := range p.Barred {
		c.log.WarnContext(ctx, "a skill server may not use files that are declared for it", slog.String("server", c.src.Title()), slog.String("why", why))
	}
	return p, nil
}

// server describes the isolated process of a source: it sees its own home.
func (i *Isolation) server(source Source) sandbox.Server {
	sum := sha256.Sum256([]byte(source.Server()))
	return sandbox.Server{
		Command: source.Command, Env: source.Env, Files: source.Files, Hidden: i.Hidden, Offline: source.NoNetwork,
		Dir: filepath.Join(i.Homes, hex.EncodeToString(sum[:8])),
	}
}

// inherited are the variables of our environment that a plain child sees.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// plain runs the command as a child of this process, in a process group of its own. The pipes are
// our own, so that reaping the process does not discard its last output.
func plain(ctx context.Context, src Source) (*sandbox.ServerProcess, error) {
	//nolint:gosec // G204: the command is the configuration of whoever runs this process
	cmd := exec.CommandContext(ctx, src.Command[0], src.Command[1:]...)
	cmd.Env = environment(src.Env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var ours, theirs [3]*os.File
	var errs [3]error
	theirs[0], ours[0], errs[0] = os.Pipe()
	ours[1], theirs[1], errs[1] = os.Pipe()
	ours[2], theirs[2], errs[2] = os.Pipe()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	err := errors.Join(errs[:]...)
	if err == nil {
		err = cmd.Start()
	}
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the whole group; one that is gone is no error
	wait := func() error {
		err := cmd.Wait()
		kill() // descendants of the child would keep its pipes open
		return err
	}
	return &sandbox.ServerProcess{Stdin: ours[0], Stdout: ours[1], Stderr: ours[2], Wait: wait, Kill: kill}, nil
}

// closeAll closes files; closing one that was not opened does nothing.
func closeAll(files [3]*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// environment is a few variables of ours, then those of the source.
func environment(configured []string) []string {
	env := []string{} // nil would mean all of ours
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return slices.Concat(env, configured) // of two values of a variable the last counts
}
