package cli

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
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

// layers are a file and variables that set every key to something of their own.
func layers(t *testing.T) (path string, env map[string]string) {
	t.Helper()
	path = file(t, "writ.yaml", "data: f\nlisten: f:1\nnats: f:2\nskills: [f]\npolicies: f\nsandbox: f\nmodel: f\nmodel_url: f\nmodel_key: f\nlog_level: f\n")
	return path, map[string]string{
		"WRIT_DATA": "e", "WRIT_LISTEN": "e:1", "WRIT_NATS": "e:2", "WRIT_SKILLS": "e", "WRIT_POLICIES": "e", "WRIT_SANDBOX": "e",
		"WRIT_MODEL": "e", "WRIT_MODEL_URL": "e", "WRIT_MODEL_KEY": "e", "WRIT_LOG_LEVEL": "e",
	}
}

// TestFlagsOverEnvironment gives each flag alone: it changes its own key and
// leaves the others as the environment has them.
func TestFlagsOverEnvironment(t *testing.T) {
	path, env := layers(t)
	base := configured(t, env, "--config", path)
	if want := (config.Config{
		Data: "e", Listen: "e:1", NATS: "e:2", Skills: []string{"e"}, Policies: "e", Sandbox: "e", Model: "e", ModelURL: "e",
		ModelKey: "e", LogLevel: "e",
	}); !reflect.DeepEqual(base, want) {
		t.Fatalf("without flags: %+v", base)
	}
	tests := map[string]func(*config.Config){
		"data":      func(c *config.Config) { c.Data = "g" },
		"listen":    func(c *config.Config) { c.Listen = "g" },
		"nats":      func(c *config.Config) { c.NATS = "g" },
		"skills":    func(c *config.Config) { c.Skills = []string{"g"} },
		"policies":  func(c *config.Config) { c.Policies = "g" },
		"sandbox":   func(c *config.Config) { c.Sandbox = "g" },
		"model":     func(c *config.Config) { c.Model = "g" },
		"model-url": func(c *config.Config) { c.ModelURL = "g" },
		"log-level": func(c *config.Config) { c.LogLevel = "g" },
	}
	for name, change := range tests {
		want := base
		change(&want)
		if d := cmp.Diff(want, configured(t, env, "--config", path, "--"+name, "g")); d != "" {
			t.Errorf("--%s (-want +got):\n%s", name, d)
		}
	}
	cmd := &cobra.Command{}
	configFlags(cmd)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, tested := tests[f.Name]; !tested && f.Name != "config" {
			t.Errorf("--%s is not tested here: does it count over the environment?", f.Name)
		}
	})
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

var marked = regexp.MustCompile("`(--[a-z-]+)`")

// TestFlagsDocumented: the page names every flag of the configuration, in the
// row of the key that it sets, and none that is not there.
func TestFlagsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{} // flag to key
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		flagCell := 3
		if len(cells) == 2 { // the table of what is no key
			flagCell = 0
		} else if len(cells) != 5 {
			continue
		}
		if m := marked.FindStringSubmatch(cells[flagCell]); m != nil {
			have[m[1]] = strings.Trim(strings.TrimSpace(cells[0]), "`")
		}
	}
	want := map[string]string{"--config": "--config"}
	keys := reflect.TypeFor[config.Config]()
	for i := range keys.NumField() {
		key := keys.Field(i).Tag.Get("yaml")
		if key != "model_key" { // others can read a command line
			want["--"+strings.ReplaceAll(key, "_", "-")] = key
		}
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("docs/configuration.md (-keys +page):\n%s", d)
	}
	cmd := &cobra.Command{}
	configFlags(cmd)
	var declared []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { declared = append(declared, "--"+f.Name) })
	if d := cmp.Diff(slices.Sorted(maps.Keys(want)), declared); d != "" {
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
