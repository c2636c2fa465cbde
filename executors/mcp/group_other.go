//go:build !unix

package mcp

import "os/exec"

func ownGroup(*exec.Cmd) {}

// killGroup kills the child only: there are no process groups here.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
