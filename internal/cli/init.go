package cli

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/state/agents"
)

// newFiles are the templates of the files that writ init writes.
//
//go:embed initfiles
var newFiles embed.FS

func initCommand(c *command) {
	skills := c.Flags().StringArray("skills", nil, "URL or command of a skill server (MCP); may be repeated")
	c.mustGive("skills")
	c.answer = func(args []string) (answer, error) {
		name := args[0]
		files, err := filled(name, *skills)
		if err != nil {
			return answer{}, usage(err)
		}
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return answer{}, fmt.Errorf("%s already exists: choose another name, or remove it", name)
		}
		said := struct {
			Dir   string   `json:"dir"`
			Files []string `json:"files"`
		}{Dir: name}
		for _, f := range files {
			path := filepath.Join(name, f[0])
			if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
				return answer{}, err
			}
			if err := durable.New(path, []byte(f[1])); err != nil {
				return answer{}, err
			}
			said.Files = append(said.Files, path)
		}
		return answer{data: said, text: strings.Join(said.Files, "\n") + "\n", note: "next: cd " + name + " && writ up\n"}, nil
	}
}

// filled returns the paths and texts of the files. The error is about the arguments.
func filled(name string, skills []string) (files [][2]string, err error) {
	if slices.ContainsFunc(agents.Builtins(), func(d *agents.Definition) bool { return d.Name == name }) {
		return nil, fmt.Errorf("%s is a built-in agent: choose another name", name)
	}
	var servers, names, tools []string
	for _, text := range skills {
		server, place, err := serverOf(text, names)
		if err != nil {
			return nil, fmt.Errorf("--skills: %w", err)
		}
		names, tools = append(names, server), append(tools, "  - server: "+server)
		servers = append(servers, "  - name: "+server+"\n    "+place)
	}
	fill := strings.NewReplacer("NAME", name, "SERVERS", strings.Join(names, ", "), "SKILLS", strings.Join(servers, "\n"), "TOOLS", strings.Join(tools, "\n"))
	for _, path := range []string{"writ.yaml", "agents/NAME.yaml", "README.md"} {
		text, err := newFiles.ReadFile("initfiles/" + path)
		if err != nil {
			return nil, err
		}
		files = append(files, [2]string{fill.Replace(path), fill.Replace(string(text))})
	}
	if _, err := agents.Parse([]byte(files[1][1])); err != nil {
		return nil, fmt.Errorf("the name %q: %w", name, err)
	}
	return files, nil
}

// serverOf reads a URL or a command, and returns a name and a place for the server as in writ.yaml.
// A program at a relative path gets its absolute path, since writ up runs elsewhere.
func serverOf(text string, taken []string) (name, place string, err error) {
	source, err := mcp.ParseSource(text)
	if err != nil {
		return "", "", err
	}
	if !reflect.DeepEqual(source.Settings, mcp.Settings{}) {
		return "", "", errors.New("give the URL or the command alone, without what stands before --: name, headers and effects have their place in the writ.yaml that is written")
	}
	base := serverName(source)
	name = base
	for n := 2; slices.Contains(taken, name); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	if source.URL != "" {
		return name, fmt.Sprintf("url: %q", source.URL), nil
	}
	text = strings.TrimSpace(text)
	program := source.Command[0]
	if after, plain := strings.CutPrefix(text, program); plain && strings.Contains(program, "/") {
		program, err = filepath.Abs(program)
		text = program + after
	}
	return name, fmt.Sprintf("command: %q", text), err
}

var (
	launchers = []string{"npx", "uvx", "node", "python3"} // that run the server named next
	notServer = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// serverName is the default name of a server: the first part of its host, or its program.
func serverName(s mcp.Source) string {
	name := ""
	if u, err := url.Parse(s.URL); err == nil {
		name, _, _ = strings.Cut(u.Hostname(), ".")
	}
	for _, word := range s.Command {
		if base := filepath.Base(word); !slices.Contains(launchers, base) && !strings.HasPrefix(word, "-") {
			name = strings.TrimSuffix(base, filepath.Ext(base))
			break
		}
	}
	name = strings.Trim(notServer.ReplaceAllString(name, "-"), "-")
	if name == "" || name == "localhost" || name[0] <= '9' { // an address
		name = "skills"
	}
	return strings.Trim(name[:min(len(name), 28)], "-") // with room for a number
}
