package mcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"aob.dev/writ/internal/visible"
)

// Source is the location of a server: URL for streamable HTTP, else Command for a
// child process.
type Source struct {
	URL     string
	Command []string
	Settings
	builtin string // name of a server of this process
}

// Builtin is a trusted server of this process. Its name identifies it across
// restarts, whatever its address. Configuration cannot name one.
func Builtin(name, url string) Source {
	return Source{URL: url, builtin: name, Settings: Settings{Trust: true}}
}

// ParseSource reads a server from a text, the short form of a mapping:
//
//	https://skills.example/mcp                          streamable HTTP
//	npx -y some-server "an argument"                    a child process
//	name=git files=/srv/repo:rw -- mcp-server-git       with members in front
//	name=shop openapi=shop.yaml url=https://shop.example the HTTP API of a document
//
// A command line is split at white space; single and double quotes and the
// backslash work as in a shell, and nothing is expanded. Credentials in a URL
// are refused: they would be shown; send them as a header.
func ParseSource(s string) (Source, error) {
	n, err := longForm(strings.TrimSpace(s))
	var src Source
	if err == nil {
		src, err = readServer(n, os.Getenv)
	}
	if err != nil { // the text may contain a secret
		return Source{}, errors.New("skill server: " + strings.TrimLeft(err.Error(), ":. "))
	}
	return src, nil
}

// ParseURL reads a server at a URL.
func ParseURL(s string) (Source, error) {
	u, err := parseURL(s)
	return Source{URL: u}, err
}

// membersEnd separates the members in the short form from the command or URL.
const membersEnd = "--"

// shortMembers are those that the short form can have. Others can read a command line, so it has no
// headers, client_secret or principal_hmac.
var shortMembers = []string{"name", "openapi", "url", "env", "files", "network", "isolation", "effect", "timeout_sec", "timeout", "rpm", "tenant", "trust", "open_world", "auth", "issuer", "client_id", "scopes", "forward_api_key"}

// longForm makes the mapping of a short form. A command without members may contain "--" itself.
func longForm(s string) (*yaml.Node, error) {
	if isURL(s) {
		return mapping(word("url"), word(s)), nil
	}
	words, err := split(s)
	if err != nil || len(words) == 0 {
		return mapping(), err
	}
	n, place := mapping(), words
	if key, _, ok := strings.Cut(words[0], "="); ok && slices.Contains(append(shortMembers, "header", "headers", "principal_hmac", "client_secret"), key) {
		end := slices.Index(words, membersEnd)
		if end < 0 && slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "openapi=") }) {
			end = len(words) // its url is a member, too
		}
		if end < 0 || slices.ContainsFunc(words[:end], func(w string) bool { return !strings.Contains(w, "=") }) {
			return nil, errors.New("what stands in front of the command or URL ends with --, as in: name=git -- mcp-server-git")
		}
		for _, w := range words[:end] {
			if err := addMember(n, w); err != nil {
				return nil, err
			}
		}
		if place = words[min(end+1, len(words)):]; len(place) == 0 {
			return n, nil
		}
	}
	if len(place) == 1 && isURL(place[0]) {
		n.Content = append(n.Content, word("url"), word(place[0]))
		return n, nil
	}
	command := &yaml.Node{Kind: yaml.SequenceNode}
	for _, w := range place {
		command.Content = append(command.Content, word(w))
	}
	n.Content = append(n.Content, word("command"), command)
	return n, nil
}

// addMember adds a member of the short form, KEY=value, to a mapping.
func addMember(n *yaml.Node, text string) error {
	key, value, _ := strings.Cut(text, "=")
	switch key {
	case "env": // NAME=value, or NAME for a variable of ours
		name, v, given := strings.Cut(value, "=")
		if !given {
			v = "${" + name + "}"
		}
		within(n, "env", yaml.MappingNode, word(name), word(v))
	case "effect", "timeout":
		at := max(strings.LastIndexByte(value, ':'), 0)
		within(n, key+"s", yaml.MappingNode, word(value[:at]), word(strings.TrimPrefix(value[at:], ":")))
	case "files":
		path, mode := value, "ro"
		if p, write := strings.CutSuffix(value, ":rw"); write {
			path, mode = p, "rw"
		}
		within(n, "files", yaml.SequenceNode, mapping(word("path"), word(path), word("mode"), word(mode)))
	case "tenant":
		within(n, "tenants", yaml.SequenceNode, word(value))
	default:
		if !slices.Contains(shortMembers, key) {
			return fmt.Errorf("no %q stands in front of --: there are %s; headers, client_secret and principal_hmac stand in the configuration file, because others can read a command line: see docs/skills.md", visible.Line(key, maxServerName), strings.Join(shortMembers, ", "))
		}
		n.Content = append(n.Content, word(key), word(value))
	}
	return nil
}

func word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

func mapping(content ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: content}
}

// within adds to a member that is a mapping or a list, and makes it if it is not there. Names and
// values take turns in the content, and a value may be the name of a member: name=files.
func within(n *yaml.Node, key string, kind yaml.Kind, content ...*yaml.Node) {
	i := 0
	for i < len(n.Content) && n.Content[i].Value != key {
		i += 2
	}
	if i == len(n.Content) {
		n.Content = append(n.Content, word(key), &yaml.Node{Kind: kind})
	}
	n.Content[i+1].Content = append(n.Content[i+1].Content, content...)
}

// isURL distinguishes a URL from a command line.
func isURL(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && scheme != "" && !strings.ContainsAny(scheme, " \t\"'/=")
}

func parseURL(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil {
		return "", errors.New("not a URL") // the text may contain a password
	}
	shown := Source{URL: s}.Endpoint()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%s: only http and https URLs, or a command", shown)
	case u.Hostname() == "":
		return "", fmt.Errorf("%s: the URL has no host", shown)
	case u.User != nil:
		return "", fmt.Errorf("%s: no credentials in a URL; configure a header", shown)
	case u.Fragment != "":
		return "", fmt.Errorf("%s: no fragment in a URL", shown)
	}
	return u.String(), nil
}

// Endpoint names the server without possible secrets: the URL without credentials and
// query, or "stdio:" and the name of the command.
func (s Source) Endpoint() string {
	if s.builtin != "" {
		return "builtin:" + s.builtin
	}
	if s.URL == "" {
		if len(s.Command) == 0 {
			return "stdio:"
		}
		return "stdio:" + filepath.Base(s.Command[0])
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return "http:"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Server identifies the server: the configured name, the origin, which is the
// endpoint of a URL or the command line of a process, and with OAuth who issues the tokens. It is part of the digest of each
// tool, so that an approval binds the server too: the same tool of another server is
// another version. It may contain secrets of a command line and is for digests only.
func (s Source) Server() string {
	origin := any(s.Command)
	if s.URL != "" {
		origin = s.Endpoint()
	}
	raw, err := json.Marshal(struct {
		Name   string `json:"name"`
		Origin any    `json:"origin"`
		Auth   string `json:"auth,omitempty"`
		Issuer string `json:"issuer,omitempty"`
	}{s.Name, origin, s.OAuth.Mode, s.OAuth.Issuer})
	if err != nil {
		return "" // texts always marshal
	}
	return string(raw)
}

// Title names the server for people: its configured name, else its endpoint.
func (s Source) Title() string { return cmp.Or(s.Name, s.Endpoint()) }

// split cuts a command line into words.
func split(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	started, quote := false, rune(0)
	escaped := false
	for _, r := range s {
		switch {
		case r == 0 || r == '\n' || r == '\r':
			return nil, errors.New("a command is one line")
		case escaped:
			escaped = false
			word.WriteRune(r)
		case r == '\\' && quote != '\'':
			escaped, started = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, started = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if started {
				words = append(words, word.String())
				word.Reset()
				started = false
			}
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if started {
		words = append(words, word.String())
	}
	return words, nil
}
