package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func mcpCommand(c *command) {
	c.personFlags()
	c.run = func([]string) error {
		to, err := c.client()
		if err != nil {
			return err
		}
		return to.Bridge(c.Context(), c.std.In, c.std.Out)
	}
}

// stdio is how an MCP client starts a server.
type stdio struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

// mcpInstalls say by client where its configuration belongs, and how it is written.
var mcpInstalls = map[string]struct {
	where string
	text  func(stdio) string
}{
	"claude-desktop": {"claude_desktop_config.json (Settings, Developer, Edit Config)", serversJSON},
	"claude-code":    {".mcp.json of a project", serversJSON},
	"cursor":         {"~/.cursor/mcp.json, or .cursor/mcp.json of a project", serversJSON},
	"gemini-cli":     {"~/.gemini/settings.json", serversJSON},
	"vscode": {".vscode/mcp.json of a workspace, or MCP: Open User Configuration", func(s stdio) string {
		s.Type = "stdio"
		return asJSON(map[string]any{"servers": map[string]stdio{"writ": s}})
	}},
	"codex": {"~/.codex/config.toml", codex},
}

func mcpClients(IO) cobra.CompletionFunc {
	return cobra.FixedCompletions(slices.Sorted(maps.Keys(mcpInstalls)), cobra.ShellCompDirectiveNoFileComp)
}

func mcpInstall(c *command) {
	c.personFlags()
	c.run = func(args []string) error {
		known := slices.Sorted(maps.Keys(mcpInstalls))
		client, ok := mcpInstalls[args[0]]
		if !ok {
			return usage(fmt.Errorf("no client %q is known: there are %s", args[0], strings.Join(known, ", ")))
		}
		s, err := c.stdio()
		if err != nil {
			return err
		}
		fmt.Fprintf(c.std.Err, "%s:\n", client.where)
		_, err = fmt.Fprint(c.std.Out, client.text(s))
		return err
	}
}

// stdio starts `writ mcp` as this command was started: with the same context, or data
// directory, or URL. An API key is never printed: it comes from where it is kept, or from the
// client's environment.
func (c *command) stdio() (s stdio, err error) {
	if s.Command, err = os.Executable(); err != nil {
		return s, err
	}
	t := targetOf(c.Command)
	_, from, _, err := contextOf(c.std, given(c.Flags().Lookup("context")))
	if err != nil {
		return s, err
	}
	s.Args = []string{"mcp"}
	if from != "" && (t.URL.From == from || t.Data.From == from) {
		s.Args = append(s.Args, "--context", strings.TrimPrefix(from, "context "))
		return s, nil
	}
	data, err := filepath.Abs(t.Data.Value)
	if err != nil {
		return s, err
	}
	own := strings.HasPrefix(t.Key.From, t.Data.Value) // the directory has the key
	if own {
		s.Args = append(s.Args, "--data", data)
	} else {
		s.Env = map[string]string{"WRIT_API_KEY": "<your API key>"}
	}
	if !own || t.elsewhere() {
		s.Args = append(s.Args, "--url", t.URL.Value)
	}
	return s, nil
}

func serversJSON(s stdio) string {
	return asJSON(map[string]any{"mcpServers": map[string]stdio{"writ": s}})
}

func asJSON(v any) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // plain data
	return out.String()
}

func codex(s stdio) string {
	args, _ := json.Marshal(s.Args) // as TOML writes them, too
	out := fmt.Sprintf("[mcp_servers.writ]\ncommand = %q\nargs = %s\n", s.Command, args)
	for name, value := range s.Env {
		out += fmt.Sprintf("env = { %s = %q }\n", name, value)
	}
	return out
}
