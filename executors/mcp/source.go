package mcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
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

// ParseSource reads the value of a configuration setting or flag:
//
//	https://skills.example/mcp                          streamable HTTP
//	npx -y some-server "an argument"                    a child process
//	name=git files=/srv/repo:rw -- mcp-server-git       with settings, see [Settings]
//
// A command line is split at white space; single and double quotes and the
// backslash work as in a shell, and nothing is expanded. Credentials in a URL
// are refused: they would be shown; send them as a header.
func ParseSource(s string) (Source, error) {
	s = strings.TrimSpace(s)
	if isURL(s) {
		return parseURL(s)
	}
	words, err := split(s)
	if err != nil {
		return Source{}, fmt.Errorf("skill server: %w", err) // the text may contain a secret
	}
	set, words, err := parseSettings(words)
	if err != nil {
		return Source{}, fmt.Errorf("skill server: %w", err)
	}
	return set.source(words)
}

// Source is the server at a URL, or else of a command line, with these settings.
func (s *Settings) Source(url, command string) (src Source, err error) {
	if url != "" {
		src, err = parseURL(url)
		src.Settings = *s
		return src, err
	}
	words, err := split(command)
	if err == nil && len(words) > 0 && isURL(words[0]) {
		err = errors.New("a URL is no command: write url in place of command")
	}
	if err != nil {
		return Source{}, err
	}
	return s.source(words)
}

func (s *Settings) source(words []string) (Source, error) {
	if len(words) == 0 || words[0] == "" {
		return Source{}, errors.New("skill server: neither a URL nor a command")
	}
	if len(words) > 1 || !isURL(words[0]) {
		return Source{Command: words, Settings: *s}, nil
	}
	if s.ofProcess() {
		return Source{}, errors.New("skill server: env, files, network and isolation are settings of a command, not of a URL")
	}
	src, err := parseURL(words[0])
	src.Settings = *s
	return src, err
}

// isURL distinguishes a URL from a command line.
func isURL(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && scheme != "" && !strings.ContainsAny(scheme, " \t\"'/=")
}

func parseURL(s string) (Source, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Source{}, errors.New("skill server: not a URL") // the text may contain a password
	}
	shown := Source{URL: s}.Endpoint()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return Source{}, fmt.Errorf("skill server %s: only http and https URLs, or a command", shown)
	case u.Hostname() == "":
		return Source{}, fmt.Errorf("skill server %s: the URL has no host", shown)
	case u.User != nil:
		return Source{}, fmt.Errorf("skill server %s: no credentials in a URL; configure a header", shown)
	case u.Fragment != "":
		return Source{}, fmt.Errorf("skill server %s: no fragment in a URL", shown)
	}
	return Source{URL: u.String()}, nil
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

// Server identifies the server: the configured name and the origin, which is the
// endpoint of a URL or the command line of a process. It is part of the digest of each
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
	}{s.Name, origin})
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
