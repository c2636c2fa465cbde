package mcp

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// inherited are the variables of our environment that a child sees.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// plain runs the command as a child of this process, in a process group of its
// own. The pipes are our own, so that reaping the process does not throw away what
// it wrote last.
func (c *Client) plain(ctx context.Context, src Source) (*Process, error) {
	//nolint:gosec // G204: the command is the configuration of whoever runs this process
	cmd := exec.CommandContext(ctx, src.Command[0], src.Command[1:]...)
	cmd.Env = environment(c.opt.Env, src.Env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	outR, outW, outErr := os.Pipe()
	errR, errW, errErr := os.Pipe()
	cmd.Stdout, cmd.Stderr = outW, errW
	if err = errors.Join(outErr, errErr); err == nil {
		err = cmd.Start()
	}
	outW.Close() // of a pipe that was not made: nothing
	errW.Close()
	if err != nil {
		stdin.Close()
		outR.Close()
		errR.Close()
		return nil, err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the whole group; one that is gone is no error
	wait := func() error {
		err := cmd.Wait()
		kill() // what the child left behind would keep its pipes open
		return err
	}
	return &Process{Stdin: stdin, Stdout: outR, Stderr: errR, Wait: wait, Kill: kill}, nil
}

// environment is a few variables of ours, then what the options and the source
// give.
func environment(extra map[string]string, configured []string) []string {
	vars := map[string]string{}
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			vars[name] = v
		}
	}
	for name, v := range extra {
		vars[name] = v
	}
	for _, line := range configured {
		name, v, _ := strings.Cut(line, "=")
		vars[name] = v
	}
	env := []string{} // nil would mean all of ours
	for name, v := range vars {
		env = append(env, name+"="+v)
	}
	slices.Sort(env)
	return env
}
