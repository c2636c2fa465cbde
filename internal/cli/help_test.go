package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// leaves calls a function for each command that does something.
func leaves(c *cobra.Command, do func(*cobra.Command)) {
	if !c.HasSubCommands() {
		do(c)
	}
	for _, sub := range c.Commands() {
		leaves(sub, do)
	}
}

func tree() *cobra.Command {
	root := &cobra.Command{Use: "writ"}
	addCommands(root, IO{Env: func(string) string { return "" }})
	return root
}

// TestExamples: each command has an example, which is one of its: its flags are known, and its
// arguments are as many as it takes.
func TestExamples(t *testing.T) {
	leaves(tree(), func(c *cobra.Command) {
		if c.Example == "" {
			t.Errorf("%s has no example: add one to examples.txt", c.CommandPath())
		}
	})
	for line := range strings.Lines(exampleLines) {
		words := typed(line)
		c, args, err := tree().Find(words[1:])
		if err != nil || c.HasSubCommands() {
			t.Errorf("%s: there is no such command: %v", line, err)
			continue
		}
		if err := c.ParseFlags(args); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if err := c.ValidateArgs(c.Flags().Args()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if err := c.ValidateRequiredFlags(); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestJSON: each command takes --json, but those that serve, or talk with somebody.
func TestJSON(t *testing.T) {
	serving := []string{"writ up", "writ serve", "writ mcp", "writ chat"}
	leaves(tree(), func(c *cobra.Command) {
		if is := c.Flags().Lookup("json") != nil; is == slices.Contains(serving, c.CommandPath()) {
			t.Errorf("%s takes --json: %v", c.CommandPath(), is)
		}
	})
}

// typed is what a shell makes of a line, without what goes into a file.
func typed(line string) (out []string) {
	line, _, _ = strings.Cut(strings.TrimSpace(line), " > ")
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// TestUsualCommands: --help shows at most 25 commands, in groups, and leaves none out of the list of all.
func TestUsualCommands(t *testing.T) {
	root, shown := tree(), 0
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			shown++
		}
	}
	if shown > 25 {
		t.Errorf("%d commands are shown", shown)
	}
	for _, g := range groups {
		for _, name := range strings.Fields(g.commands) {
			if c, _, err := root.Find([]string{name}); name != "help" && (err != nil || c.GroupID != g.name) {
				t.Errorf("%s: no such command %q", g.name, name)
			}
		}
	}
	var all strings.Builder
	if code := Main(t.Context(), []string{"commands"}, IO{Out: &all, Err: &all, Env: func(string) string { return "" }}); code != ExitOK {
		t.Fatal(all.String())
	}
	for _, c := range root.Commands() {
		if !strings.Contains("\n"+all.String(), "\n"+c.Name()+" ") {
			t.Errorf("writ commands leaves out %s", c.Name())
		}
	}
}

// TestExamplesAreAccepted: the examples of commands that need nothing but a fresh writ do what they
// say there.
func TestExamplesAreAccepted(t *testing.T) {
	data := t.TempDir() + "/data"
	s := start(t, data)
	tried := 0
	for line := range strings.Lines(exampleLines) {
		words := typed(line)[1:]
		command := words[0]
		if len(words) > 1 && !strings.HasPrefix(words[1], "-") {
			command += " " + words[1]
		}
		switch command {
		case "plan list", "approvals list", "workflow list", "query SEARCH", "query SQL usage", "kb search", "kb list", "cache stats", "cache clear", "user put", "user list",
			"apikey create", "apikey list", "apikey revoke", "role put", "role list", "tenant add", "tenant list", "grant revoke", "skill list", "keys list", "keys export", "keys rotate",
			"alerts list", "executor list", "events list", "events issue", "events revoke", "intent new", "health", "confirm clock", "audit fsck", "storage status":
		default:
			continue
		}
		tried++
		for i := range words {
			if words[i] == "seed" {
				words[i] = t.TempDir() + "/seed"
			}
		}
		given := append(words, "--data", data)
		if c, _, err := tree().Find(words); err == nil && c.Flags().Lookup("url") != nil {
			given = append(given, "--url", s.url)
		}
		if got := (call{args: given}).run(t.Context()); got.code != ExitOK {
			t.Errorf("%s: %+v", strings.TrimSpace(line), got)
		}
	}
	if r := s.stop(); r.code != ExitOK || tried < 32 {
		t.Errorf("%d examples tried; %+v", tried, r)
	}
}
