//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestUnprivileged runs the tests that matter again as a user with no rights.
func TestUnprivileged(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v",
		"-test.run=^(TestEscapes|TestEveryLayerCarriesWeight|TestLimits|TestRunResult|TestFilterRefusesTheRest)$")
	cmd.Env = os.Environ()
	asNobody(t, cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, driver := range []string{Namespaces, Landlock} {
		if !strings.Contains(string(out), "--- PASS: TestEscapes/"+driver+"/") {
			t.Logf("driver %s did not run as an unprivileged user here", driver)
		}
	}
	if !strings.Contains(string(out), "--- PASS: TestEscapes/") {
		t.Errorf("no driver was tried:\n%s", out)
	}
}

// asNobody has cmd run as a user without rights, in a directory of its own; if
// this process is such a user already, as that one.
func asNobody(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox-user-") //nolint:usetesting // below t.TempDir nobody could not pass
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cmd.Env = append(cmd.Env, "TMPDIR="+dir, "HOME="+dir)
	cmd.Dir = dir
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
