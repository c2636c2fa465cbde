package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"

	"aob.dev/writ/internal/demo"
)

// TestHelpTexts: each text of help.txt is that of the command whose path it names, and
// the question that help tells people to try is the demo's.
func TestHelpTexts(t *testing.T) {
	root := &cobra.Command{Use: "writ"}
	addCommands(root, IO{})
	texts := txtar.Parse(helpTexts).Files
	if len(texts) == 0 {
		t.Fatal("no texts")
	}
	for _, f := range texts {
		c, rest, err := root.Find(strings.Fields(f.Name))
		if err != nil || len(rest) > 0 || c.CommandPath() != "writ "+f.Name || c.Long+"\n" != string(f.Data) || c.Long == "" {
			t.Errorf("%q is the text of %q: %v", f.Name, c.CommandPath(), err)
		}
	}
	if up, _, _ := root.Find([]string{"up"}); !strings.Contains(up.Long, demo.Question) {
		t.Error(up.Long)
	}
}

// runAnswer runs a command that answers, and gives what it prints and how it ends.
func runAnswer(t *testing.T, a answer, failed error, args ...string) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	std := IO{Out: &stdout, Err: &stderr, Env: func(string) string { return "" }}
	cmd := row{use: "x", make: func(c *command) {
		c.answer = func([]string) (answer, error) { return a, failed }
	}}.command(std)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// TestAnswer: data with --json, else text and note; then the end, which is no more
// than exit 1 where an error does not say otherwise.
func TestAnswer(t *testing.T) {
	a := answer{data: map[string]int{"n": 1}, text: "one\n", note: "noted\n", end: unless(false, "not one")}
	var exit *exitError
	if out, errs, err := runAnswer(t, a, nil); out != "one\n" || errs != "noted\n" || !errors.As(err, &exit) || exit.code != ExitNo || !exit.silent {
		t.Errorf("%q %q %v", out, errs, err)
	}
	if out, errs, err := runAnswer(t, a, nil, "--json"); !strings.Contains(out, `"n": 1`) || errs != "" || err == nil {
		t.Errorf("%q %q %v", out, errs, err)
	}
	if out, _, err := runAnswer(t, a, errors.New("requires a person")); out != "" || !errors.As(err, &exit) || exit.code != ExitNo {
		t.Errorf("%q %v: a command's own error is no word about its arguments", out, err)
	}
	if _, _, err := runAnswer(t, a, malformed(errors.New("x"))); !errors.As(err, &exit) || exit.code != ExitMalformed {
		t.Error(err)
	}
}

// TestTimeFlag: a time, or so long ago, and each flag names itself in an error.
func TestTimeFlag(t *testing.T) {
	var since, before time.Time
	cmd := &cobra.Command{}
	cmd.Flags().Var(&timeFlag{at: &since, ago: true}, "since", "")
	cmd.Flags().Var(&timeFlag{at: &before}, "before", "")
	if err := cmd.ParseFlags([]string{"--since", "2h", "--before", "2026-11-20T10:00:00Z"}); err != nil {
		t.Fatal(err)
	}
	if age := time.Since(since); age < 2*time.Hour || age > 3*time.Hour || before.Hour() != 10 {
		t.Errorf("%v %v", since, before)
	}
	for flag, value := range map[string]string{"since": "soon", "before": "2h"} {
		if err := cmd.ParseFlags([]string{"--" + flag, value}); err == nil || !strings.Contains(err.Error(), "--"+flag) {
			t.Errorf("--%s %s: %v", flag, value, err)
		}
	}
}

// TestNamed: a usage line shows the number of arguments of a command.
func TestNamed(t *testing.T) {
	for use, want := range map[string][2]int{
		"up": {0, 0}, "show ID": {1, 1}, "data KEY JSON": {2, 2}, "lint [FILE|-]": {0, 1}, "sign [FILE|-] --signer FILE": {0, 1},
		"resolve ID done|failed --reason TEXT": {2, 2}, "set NAME [--url URL] [--data DIR]": {1, 1}, "add --subject U (--out F|--jwk F)": {0, 0}, "serve ROLE…": {1, 9}, "approve NAME … [--yes]": {1, 9}, "search [TEXT …]": {0, 9},
	} {
		for n := range 4 {
			if err := named(use)(&cobra.Command{}, make([]string, n)); (err == nil) != (n >= want[0] && n <= want[1]) {
				t.Errorf("%s with %d: %v", use, n, err)
			}
		}
	}
}
