//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child lead a process group, so that it can be killed
// with everything it started.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the child and what it started; a group that is gone is no error.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
