package cli

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"aob.dev/writ/internal/config"
)

// configured parses flags and reads the configuration under them.
func configured(t *testing.T, env map[string]string, args ...string) config.Config {
	t.Helper()
	cmd := &cobra.Command{}
	load := configFlags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	c, err := load(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// secret are the keys of the configuration that have no flag: others can read a command line.
var secret = []string{"model_key", "documents_auth", "embedder_key", "reranker_key", "bootstrap_key", "slack_token", "alert_webhook_secret", "alert_slack", "audit_stream_secret"}

// keys of the configuration, in its order.
func keys() []string {
	var out []string
	for _, s := range config.Settings {
		out = append(out, s.Name)
	}
	return out
}

// setKey sets a key to a word, or, where it takes a number, to that.
func setKey(c *config.Config, key, word string, number int) (text string) {
	switch v := config.Settings[slices.Index(keys(), key)].Bind(c).(type) {
	case *int:
		*v = number
		return strconv.Itoa(number)
	case *[]string:
		*v = []string{word}
	case *string:
		*v = word
	}
	return word
}

// layers are a file and variables that set every key to something of their own.
func layers(t *testing.T) (path string, env map[string]string) {
	t.Helper()
	var text strings.Builder
	env = map[string]string{}
	for _, key := range keys() {
		var c config.Config
		value := setKey(&c, key, "f=f", 5)
		if _, list := config.Settings[slices.Index(keys(), key)].Bind(&c).(*[]string); list {
			value = "[" + value + "]"
		}
		text.WriteString(key + ": " + value + "\n")
		env["WRIT_"+strings.ToUpper(key)] = setKey(&c, key, "e=e", 7)
	}
	return file(t, "writ.yaml", text.String()), env
}

// TestFlagsOverEnvironment gives each flag alone: it changes its own key and
// leaves the others as the environment has them.
func TestFlagsOverEnvironment(t *testing.T) {
	path, env := layers(t)
	base := config.Config{Variables: map[string]string{}, File: path}
	for _, key := range keys() {
		setKey(&base, key, "e=e", 7)
		base.Variables[key] = "WRIT_" + strings.ToUpper(key)
	}
	if d := cmp.Diff(base, configured(t, env, "--config", path)); d != "" {
		t.Fatalf("without flags (-want +got):\n%s", d)
	}
	for _, key := range keys() {
		if slices.Contains(secret, key) {
			continue
		}
		want := base
		want.Variables = maps.Clone(base.Variables)
		delete(want.Variables, key)
		flag := "--" + strings.ReplaceAll(key, "_", "-")
		got := configured(t, env, "--config", path, flag, setKey(&want, key, "g=g", 9))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", flag, d)
		}
	}
}

// TestFlagWithDefault: a flag that was given counts, also with the value that is
// the default anyway.
func TestFlagWithDefault(t *testing.T) {
	_, env := layers(t)
	for name, get := range map[string]func(config.Config) string{
		"data":   func(c config.Config) string { return c.Data },
		"listen": func(c config.Config) string { return c.Listen },
		"model":  func(c config.Config) string { return c.Model },
	} {
		want := get(config.Default())
		if got := get(configured(t, env, "--"+name, want)); got != want {
			t.Errorf("--%s %s: %s", name, want, got)
		}
	}
}

func TestSkillsRepeated(t *testing.T) {
	c := configured(t, nil, "--skills", "https://a", "--skills", "npx -y server, with a comma")
	if d := cmp.Diff([]string{"https://a", "npx -y server, with a comma"}, c.Skills); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

var key = regexp.MustCompile("^[|*] `((?:--)?[a-z_]+)`(?: \\(`[^`]*`\\))?(?:: | \\|)")

// TestFlagsDocumented: the page has a row of every key of the configuration, and says which
// have no flag: the flag of any other is its name with dashes.
func TestFlagsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{} // whether there is a flag
	for line := range strings.Lines(string(text)) {
		if m := key.FindStringSubmatch(line); m != nil && (line[0] == '*' || m[1] == "--config") {
			have[m[1]] = !strings.Contains(line, "(*secret*)")
		}
	}
	want := map[string]bool{"--config": true}
	flags := []string{"--config"}
	for _, key := range keys() {
		want[key] = !slices.Contains(secret, key)
		if want[key] {
			flags = append(flags, "--"+strings.ReplaceAll(key, "_", "-"))
		}
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("docs/configuration.md (-keys +page):\n%s", d)
	}
	cmd := &cobra.Command{}
	configFlags(cmd)
	var declared []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { declared = append(declared, "--"+f.Name) })
	slices.Sort(flags)
	if d := cmp.Diff(flags, declared); d != "" {
		t.Errorf("flags (-keys +declared):\n%s", d)
	}
	for _, name := range []string{"`WRIT_API_KEY`", "`NO_COLOR`"} {
		if !strings.Contains(string(text), name) {
			t.Errorf("the page does not name %s", name)
		}
	}
}

// TestUpInvalid: what Validate says is a usage error; the flag counts, so the
// variable's mistake is not told.
func TestUpInvalid(t *testing.T) {
	env := map[string]string{"WRIT_LOG_LEVEL": "loud", "WRIT_DATA": t.TempDir()}
	got := call{args: []string{"up"}, env: env}.run(t.Context())
	if got.code != ExitUsage || !strings.Contains(got.err, "log_level") || got.out != "" {
		t.Errorf("exit %d, stderr %q", got.code, got.err)
	}
	got = call{args: []string{"up", "--log-level", "info", "--model", "gpt"}, env: env}.run(t.Context())
	if got.code != ExitUsage || strings.Contains(got.err, "log_level") || !strings.Contains(got.err, "model") {
		t.Errorf("exit %d, stderr %q", got.code, got.err)
	}
}
