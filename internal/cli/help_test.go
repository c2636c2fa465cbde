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

// TestJSON: each command takes --json and -o, but those that serve, or talk with somebody.
func TestJSON(t *testing.T) {
	serving := []string{"writ up", "writ admin cell serve", "writ mcp", "writ chat"}
	leaves(tree(), func(c *cobra.Command) {
		if is := c.Flags().Lookup("json") != nil; is == slices.Contains(serving, c.CommandPath()) {
			t.Errorf("%s takes --json: %v", c.CommandPath(), is)
		} else if is != (c.Flags().ShorthandLookup("o") != nil) {
			t.Errorf("%s takes --json: %v, but not -o", c.CommandPath(), is)
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

// TestTopLevel: at most 26 commands are at the top, hidden ones too, and each is in a group. No
// place is free.
func TestTopLevel(t *testing.T) {
	const places = 26
	own := 0
	for _, c := range tree().Commands() {
		own++
		if c.GroupID == "" || c.Hidden {
			t.Errorf("%s is in no group of --help", c.CommandPath())
		}
	}
	if own > places {
		t.Errorf("%d commands, more than %d", own, places)
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
		of, _, err := tree().Find(words)
		if err != nil {
			t.Fatal(err)
		}
		command := strings.TrimPrefix(of.CommandPath(), "writ ")
		if command == "query" {
			command += " " + words[1]
		}
		switch command {
		case "plan list", "approvals list", "workflow list", "query SEARCH", "query SQL usage", "kb search", "kb list", "skill cache stats", "skill cache clear", "user put", "user list",
			"apikey create", "apikey list", "apikey revoke", "tenant role put", "tenant role list", "tenant add", "tenant list", "user revoke", "skill list", "admin keys list", "admin keys export", "admin keys rotate",
			"admin alerts list", "admin executor list", "admin events list", "admin events issue", "admin events revoke", "intent new", "health", "admin confirm", "audit fsck", "admin storage status":
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
		if of.Flags().Lookup("url") != nil {
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
