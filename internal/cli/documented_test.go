package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// leastDocumented guards against a search that silently finds nothing.
const leastDocumented = 350

// TestDocumentedCommands: each command that a page prints, in a sentence, a table, a heading or a
// block, is one that there is, with flags that it has and as many arguments as it takes. What is
// in brackets may be left out, and words in capitals stand for others. A command without flags
// and arguments is spoken of, and may want some.
func TestDocumentedCommands(t *testing.T) {
	root := &cobra.Command{Use: "writ"}
	addCommands(root, IO{})
	root.InitDefaultHelpFlag()
	root.Flags().Bool("version", false, "")
	root.InitDefaultCompletionCmd()
	seen := 0
	check := func(where, text string) {
		for _, words := range commandsIn(root, text) {
			seen++
			if err := documented(root, words); err != nil {
				t.Errorf("%s: `%s`: %v", where, strings.Join(words, " "), err)
			}
		}
	}
	for _, page := range pages(t) {
		raw, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range commandLines(string(raw)) {
			check(fmt.Sprintf("%s:%d", page, n), line)
		}
	}
	for n, line := range strings.Split(string(helpTexts), "\n") {
		if text, ok := strings.CutPrefix(line, "  writ "); ok {
			check(fmt.Sprintf("help.txt:%d", n+1), "writ "+text)
		}
		for _, span := range spans.FindAllStringSubmatch(line, -1) {
			check(fmt.Sprintf("help.txt:%d", n+1), span[1])
		}
	}
	if seen < leastDocumented {
		t.Errorf("%d commands found, fewer than %d", seen, leastDocumented)
	}
}

// TestDocumentedCommandsFindsWrongOnes: the check takes what is right and nothing else.
func TestDocumentedCommandsFindsWrongOnes(t *testing.T) {
	root := &cobra.Command{Use: "writ"}
	addCommands(root, IO{})
	for text, right := range map[string]bool{
		"writ up": true,
		"writ audit verify BUNDLE [--trust FILE]":         true,
		"writ intent verify [FILE|-] --keys JWKS":         true,
		"writ approvals list|show|approve":                true,
		"writ admin cell create DIR | begin DIR | status": true,
		"writ audit export | writ audit verify - --json":  true,
		"writ user put ben --role approver # a comment":   true,
		"writ nonsense":                                false,
		"writ audit nonsense":                          false,
		"writ up --nonsense":                           false,
		"writ user put a b --role x":                   false,
		"writ audit export | writ audit nonsense":      false,
		"writ approvals list|nonsense":                 false,
		"writ admin cell create DIR | nonsense":        false,
		"writ audit verify --trust FILE":               false,
		"writ audit verify BUNDLE [--nonsense [FILE]]": false,
		"writ intent verify a b --keys JWKS":           false,
	} {
		err := error(nil)
		for _, words := range commandsIn(root, text) {
			err = errors.Join(err, documented(root, words))
		}
		if (err == nil) != right {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// pages are the Markdown of the repository that speaks to readers of today.
func pages(t *testing.T) (list []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "policies/*.md", "deploy/*.md", "deploy/*/*.md", "internal/cli/initfiles/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			name, _ = filepath.Rel(filepath.Join("..", ".."), name)
			// Decisions tell of the past; in the specifications texts begin with writ that are no commands.
			if !strings.HasPrefix(name, "docs/decisions/") && !strings.HasPrefix(name, "docs/spec/") {
				list = append(list, name)
			}
		}
	}
	return list
}

var spans = regexp.MustCompile("`(writ [^`]+)`")

// commandLines are the commands of a page by their lines: headings, spans, and lines of blocks.
func commandLines(page string) map[int]string {
	out := map[int]string{}
	block, session := false, false // a session shows what is printed, too
	add := func(n int, text string) { out[n] = strings.TrimPrefix(out[n]+"\n"+text, "\n") }
	joined := ""
	for n, line := range strings.Split(page, "\n") {
		n++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			block, session, joined = !block, false, ""
			continue
		}
		switch {
		case block:
			joined += strings.TrimSpace(line)
			if rest, more := strings.CutSuffix(joined, "\\"); more {
				joined = rest + " "
				continue
			}
			text, typed := strings.CutPrefix(joined, "$ ")
			session = session || typed
			if strings.HasPrefix(text, "writ ") && typed == session {
				add(n, text)
			}
			joined = ""
		case strings.HasPrefix(line, "#"):
			if _, text, ok := strings.Cut(line, "# writ "); ok {
				add(n, "writ "+text)
			}
		default:
			for _, span := range spans.FindAllStringSubmatch(line, -1) {
				add(n, strings.ReplaceAll(span[1], `\|`, "|"))
			}
		}
	}
	return out
}

// commandsIn a text, each in words. A heading has several of one group: "writ admin cell begin DIR |
// status" and "writ audit show ID, trust".
func commandsIn(root *cobra.Command, text string) (list [][]string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, " #")
		line, _, _ = strings.Cut(line, " || ")
		line = regexp.MustCompile(`\$\([^)]*\)`).ReplaceAllString(strings.TrimSuffix(strings.TrimSpace(line), " &"), "…")
		line = regexp.MustCompile(`'[^']*'|"[^"]*"`).ReplaceAllString(line, "QUOTED")
		line = regexp.MustCompile(`\[[^]]*\]`).ReplaceAllStringFunc(line, func(s string) string { return strings.ReplaceAll(s, " | ", " ") })
		var group []string
		for _, part := range regexp.MustCompile(` \| |, | && |; `).Split(line, -1) {
			part, _, _ = strings.Cut(part, " > ")
			words := strings.Fields(strings.NewReplacer("[", " [ ", "]", " ] ").Replace(part))
			switch {
			case len(words) == 0:
			case words[0] == "writ":
				list, group = append(list, words), groupOf(root, words)
			case len(group) > 1 && regexp.MustCompile(`^[a-z-]+$`).MatchString(words[0]) && !strings.Contains(line, " | jq") && words[0] != "jq":
				list = append(list, append(slices.Clone(group), words...))
			}
		}
	}
	return list
}

// groupOf are the words before the last command in a text, such as writ admin keys.
func groupOf(root *cobra.Command, words []string) []string {
	n, cmd := 1, root
	for n < len(words) {
		below := namedBelow(cmd, words[n])
		if below == nil || slices.Contains(below, nil) || !below[0].HasSubCommands() {
			break
		}
		cmd, n = below[0], n+1
	}
	return words[:n]
}

// documented describes the fault of a documented command.
func documented(root *cobra.Command, words []string) error {
	words = slices.Clone(words[1:])
	cmd := root
	for len(words) > 0 {
		below := namedBelow(cmd, words[0])
		if below == nil {
			break
		}
		if slices.Contains(below, nil) {
			return fmt.Errorf("%s has no command %q", cmd.CommandPath(), words[0])
		}
		cmd, words = below[len(below)-1], words[1:]
	}
	if cmd.HasSubCommands() && len(words) > 0 && !strings.HasPrefix(words[0], "-") && words[0] != "…" {
		return fmt.Errorf("%s has no command %q", cmd.CommandPath(), words[0])
	}
	return arguments(cmd, words)
}

// namedBelow are the commands of a group that a word names, with | between them; a nil one is
// not there. The result is nil where the word is an argument.
func namedBelow(cmd *cobra.Command, word string) (list []*cobra.Command) {
	if !cmd.HasSubCommands() {
		return nil
	}
	known := false
	for name := range strings.SplitSeq(word, "|") {
		at := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == name || c.HasAlias(name) })
		if at < 0 {
			list = append(list, nil)
			continue
		}
		known = true
		list = append(list, cmd.Commands()[at])
	}
	if !known {
		return nil
	}
	return list
}

// arguments names an unknown flag of a command, or reports a wrong number of arguments.
func arguments(cmd *cobra.Command, words []string) error {
	var must, all []string
	depth, open := 0, false
	for i := 0; i < len(words); i++ {
		word := cmp.Or(strings.TrimRight(words[i], ",.;:)"), words[i])
		switch {
		case word == "[":
			depth++
		case word == "]":
			depth--
		case word == "--" || word == "-":
			if word == "--" { // what follows is another program's
				return nil
			}
			all = append(all, word)
			if depth == 0 {
				must = append(must, word)
			}
		case strings.HasPrefix(word, "-"):
			name, _, with := strings.Cut(word, "=")
			f := flagOf(cmd, strings.Split(name, "|")[0])
			if f == nil {
				return fmt.Errorf("%s has no flag %s", cmd.CommandPath(), name)
			}
			if f.NoOptDefVal == "" && !with && i+1 < len(words) && words[i+1] != "]" && words[i+1] != "[" {
				i++
			}
			for i+2 < len(words) && words[i+1] == "|" { // of a template
				i += 2
			}
		case word == "…" || strings.HasSuffix(word, "…"):
			open = true
		case word == "|" || word == "" || strings.HasPrefix(word, "<<") || strings.HasPrefix(word, "2>"):
		default:
			all = append(all, word)
			if depth == 0 {
				must = append(must, word)
			}
		}
	}
	if open || len(words) == 0 {
		return nil
	}
	return errors.Join(cmd.ValidateArgs(must), cmd.ValidateArgs(all))
}

func flagOf(cmd *cobra.Command, name string) *pflag.Flag {
	cmd.InitDefaultHelpFlag()
	cmd.InheritedFlags()
	if long, ok := strings.CutPrefix(name, "--"); ok {
		return cmd.Flags().Lookup(long)
	}
	if len(name) == 2 {
		return cmd.Flags().ShorthandLookup(name[1:])
	}
	return nil
}
