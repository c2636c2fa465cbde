package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// ownData are the commands with --data that do not need a data directory with a log, and why.
var ownData = map[string]string{
	"writ admin alerts test": "it reads the configuration alone", "writ admin cell begin": "a cell has none", "writ admin cell copy": "it makes one",
	"writ admin cell create": "a cell has none", "writ admin cell status": "a cell has none",
	"writ login": "it needs none", "writ notify test": "it reads the configuration alone", "writ demo": "it makes one", "writ doctor": "it says so: script doctor", "writ admin keys init": "it makes one", "writ admin keys root sign": "there is none where the root key is",
	"writ admin restore": "it makes one", "writ admin sandbox run": "it needs a runtime",
	"writ admin cell serve": "a process of a cell makes what it needs", "writ up": "it makes one",
}

// TestDataDirectory: each command with --data refuses a directory that is none before it does or makes
// anything, and says what to type.
func TestDataDirectory(t *testing.T) {
	for state, put := range map[string]func(dir string) error{
		"missing": func(string) error { return nil },
		"empty":   func(dir string) error { return os.Mkdir(dir, 0o700) },
		"file":    func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		t.Run(state, func(t *testing.T) {
			refusesData(t, put, map[bool]string{true: "cannot be read", false: "writ up --data "}[state == "file"])
		})
	}
}

// TestDataDirectoryOfOthers: the same where this user may not enter it.
func TestDataDirectoryOfOthers(t *testing.T) {
	if asPowerless(t) {
		refusesData(t, func(dir string) error { return os.Mkdir(dir, 0) }, "may not enter")
	}
}

// asPowerless tells whether modes bind this process. For root, which they do not, it runs the
// test again in a process where they do.
func asPowerless(t *testing.T) bool {
	t.Helper()
	const powerless = "WRIT_TEST_POWERLESS"
	if os.Geteuid() == 0 && os.Getenv(powerless) == "" {
		runtime.LockOSThread() // for good: what it loses does not come back
		for _, power := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, power, 0, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), powerless+"=1")
		if out, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return false
	}
	return true
}

func refusesData(t *testing.T, put func(dir string) error, says string) {
	t.Helper()
	root := &cobra.Command{Use: "writ"}
	addCommands(root, IO{})
	list := withData(root)
	for name := range ownData {
		if !slices.ContainsFunc(list, func(c *cobra.Command) bool { return c.CommandPath() == name }) {
			t.Errorf("%s has no --data", name)
		}
	}
	for _, c := range list {
		if ownData[c.CommandPath()] != "" {
			continue
		}
		work := t.TempDir()
		dir := filepath.Join(work, "data")
		if err := put(dir); err != nil {
			t.Fatal(err)
		}
		before := filesIn(work)
		t.Chdir(work)
		got := writ(t, slices.Concat(strings.Fields(c.CommandPath())[1:], needed(c), []string{"--data", dir})...)
		if got.code != ExitMalformed || got.out != "" || !strings.Contains(got.err, dir) || !strings.Contains(got.err, "--data") || !strings.Contains(got.err, says) {
			t.Errorf("%s: exit %d, %q, stderr %q", c.CommandPath(), got.code, got.out, got.err)
		}
		if after := filesIn(work); !slices.Equal(before, after) {
			t.Errorf("%s made %q of %q", c.CommandPath(), after, before)
		}
	}
}

// withData are the commands below one that have --data.
func withData(cmd *cobra.Command) (list []*cobra.Command) {
	for _, c := range cmd.Commands() {
		list = append(list, withData(c)...)
		if c.Flags().Lookup("data") != nil {
			list = append(list, c)
		}
	}
	return list
}

// needed are arguments and flags that a command cannot do without.
func needed(c *cobra.Command) (args []string) {
	for _, word := range strings.Fields(c.Use)[1:] {
		word, _, _ = strings.Cut(word, "|")
		if word == "" || strings.Contains(word, "--") {
			break
		}
		if word[0] != '[' && word != "…" {
			args = append(args, word)
		}
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[cobra.BashCompOneRequiredFlag] != nil {
			value := "x"
			if f.Value.Type() == "int64" {
				value = "7"
			}
			args = append(args, "--"+f.Name, value)
		}
	})
	return args
}

func filesIn(dir string) (list []string) {
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { // what cannot be read is listed itself
		list = append(list, path)
		return nil
	})
	return list
}

// TestDoctorWithoutRights: for each file that a start needs and this user may not use, doctor says
// who may not use what, and whose it is. It makes nothing.
func TestDoctorWithoutRights(t *testing.T) {
	if !asPowerless(t) {
		return
	}
	for _, closed := range []string{
		"data", "data/keys", "data/keys/router.pem", "data/journal", "data/journal/journal.db", "data/ledger", "data/blobs", "data/documents.db", "data/lock",
		"data/conditions.json", "writ.yaml", "ca.pem", "cert.pem", "policies", "agents", "catalog", "tool",
	} {
		work := t.TempDir()
		for _, name := range []string{"data/keys/router.pem", "data/journal/journal.db", "data/ledger/checkpoint", "data/blobs/place.json", "data/documents.db", "data/lock", "data/conditions.json", "writ.yaml", "ca.pem", "cert.pem", "policies/x", "agents/x", "catalog/x", "tool/x"} {
			name = filepath.Join(work, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		t.Chdir(work)
		before := filesIn(work)
		if err := os.Chmod(closed, 0); err != nil {
			t.Fatal(err)
		}
		args := []string{
			"doctor", "--data", "data", "--config", "writ.yaml", "--documents", "https://127.0.0.1:1", "--documents-ca", "ca.pem", "--policies", "policies",
			"--agents", "agents", "--sandbox", "none-is-tried", "--nats", "127.0.0.1:0", "--nats-cert", "cert.pem", "--nats-key", "cert.pem", "--skills", "name=a -- ./tool/x",
		}
		if closed == "catalog" {
			args = append(args, "--catalog", closed)
		}
		var out, told strings.Builder
		code := Main(t.Context(), args, IO{In: strings.NewReader(""), Out: &out, Err: &told, Env: func(string) string { return "" }})
		says := regexp.MustCompile(`(?m)^(?:fail|warn) .* may not (?:read|enter|read and write) (?:\./)?` + regexp.QuoteMeta(closed) + `, which belongs to .* and has mode 0000`)
		if !says.MatchString(out.String()) || code != ExitNo {
			t.Errorf("%s: exit %d\n%s%s", closed, code, out.String(), told.String())
		}
		if err := os.Chmod(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		if after := filesIn(work); !slices.Equal(before, after) {
			t.Errorf("%s: %s, before %s", closed, after, before)
		}
	}
}
