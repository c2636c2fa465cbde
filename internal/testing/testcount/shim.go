package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
)

// behindShim is the directory of the interpreter that python3 is a shim of, as version managers
// have them: a script that starts fifty processes to find it, at each start of a node. It is ""
// where python3 is the interpreter, or there is none.
func behindShim() string {
	shim, err := exec.LookPath("python3")
	if err != nil {
		return ""
	}
	out, err := exec.CommandContext(context.Background(), shim, "-I", "-S", "-c", "import sys; print(sys.executable)").Output() //nolint:gosec // the caller's own PATH
	if err != nil {
		return ""
	}
	found := strings.TrimSpace(string(out))
	of, err := filepath.EvalSymlinks(shim)
	if err != nil {
		return ""
	}
	if is, err := filepath.EvalSymlinks(found); err != nil || is == of || filepath.Base(found) != "python3" {
		return ""
	}
	return filepath.Dir(found)
}
