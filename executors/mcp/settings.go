package mcp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/net/http/httpguts"

	"aob.dev/writ/executors/sandbox"
)

// Settings of a server are its members in the configuration file, see docs/skills.md.
type Settings struct {
	Name      string   // used by approvals; letters, digits and -
	OpenAPI   string   // file of an OpenAPI document, if the URL is the base of an API
	Env       []string // NAME=value
	Files     []sandbox.ServerFile
	NoNetwork bool
	Plain     bool              // isolation: none: a plain child, which sees everything that we see
	Effects   map[string]string // by tool, whatever it declares itself
	Header    http.Header       // of every HTTP request
	// HeaderFiles are the files of headers, by name.
	HeaderFiles map[string]*SecretFile
	Timeout     time.Duration            // of a call, see Options.Timeout; 0: not set
	Timeouts    map[string]time.Duration // likewise, by tool
	RPM         int                      // calls a minute; 0: any number
	Tenants     []string                 // that see its skills; nil: all
	// Trust means that the operator trusts the hints of the server's tools. A hint of any other
	// server is a claim that people are shown and that has no effect.
	Trust bool
	// OpenWorld is what the operator says of the server's tools, whatever their hints are; nil: nothing.
	OpenWorld *bool
	// PrincipalKey is a secret that the server shares, see CallMeta.Principal; nil: none.
	PrincipalKey []byte
	// OAuth is how requests to the server are authorized by OAuth; no mode: they are not.
	OAuth OAuth
	// ForwardKey: the caller's own key goes with each request, as X-Api-Key.
	ForwardKey bool
	// Secrets are values, or parts of them, that neither logs nor errors show, even where
	// the server itself does.
	Secrets []string
	// SecretFiles are the files that such values stand in.
	SecretFiles []string
}

// ParseServer reads a server from a mapping, with the values of the variables and files that it
// names. Errors begin with the path of a member, and never show a secret.
func ParseServer(n *yaml.Node, getenv func(string) string) (Source, error) {
	src, err := readServer(n, getenv)
	if err == nil && src.Name == "" {
		err = errors.New(".name: is missing: give the server a name, which approvals bind")
	}
	return src, err
}

// entry is a server that is being read.
type entry struct {
	Source
	getenv func(string) string
}

// member of a server.
type member struct {
	only string // url or command: only such a server has it
	read func(s *entry, n *yaml.Node) error
}

// maxRPM bounds the calls a minute of one server.
const maxRPM = 100_000

var members = map[string]member{
	"name":        {"", text((*entry).setName)},
	"url":         {"", text((*entry).setURL)},
	"command":     {"", (*entry).setCommand},
	"tenants":     {"", func(s *entry, n *yaml.Node) error { return list(n, "tenants: leave it out for all", s.addTenant) }},
	"timeout_sec": {"", wholeNumber(int(MaxTimeout/time.Second), func(s *entry, n int) { s.Timeout = time.Duration(n) * time.Second })},
	"timeouts":    {"", func(s *entry, n *yaml.Node) error { return pairs(n, s.addTimeout) }},
	"rpm":         {"", wholeNumber(maxRPM, func(s *entry, n int) { s.RPM = n })},
	"auth":        {"url", text((*entry).setAuth)},
	"issuer":      {"url", text(func(s *entry, text string) (err error) { s.OAuth.Issuer, err = parseURL(text); return err })},
	"client_id":   {"url", text(func(s *entry, text string) error { s.OAuth.ClientID = text; return nil })},
	"client_secret": {"url", func(s *entry, n *yaml.Node) error {
		s.OAuth.SecretFile = secretFile(n)
		return s.value(n, (*entry).setClientSecret)
	}},
	"forward_api_key": {"url", either("true", "false", func(s *entry) *bool { return &s.ForwardKey })},
	"scopes":          {"url", text(func(s *entry, text string) error { s.OAuth.Scopes = strings.Fields(text); return nil })},
	"effects":         {"", func(s *entry, n *yaml.Node) error { return pairs(n, s.addEffect) }},
	"trust":           {"", either("true", "false", func(s *entry) *bool { return &s.Trust })},
	"open_world": {"", func(s *entry, n *yaml.Node) error {
		s.OpenWorld = new(bool)
		return either("true", "false", func(s *entry) *bool { return s.OpenWorld })(s, n)
	}},
	"principal_hmac": {"", func(s *entry, n *yaml.Node) error {
		return s.value(n, (*entry).setPrincipalKey)
	}},
	"openapi": {"url", text((*entry).setOpenAPI)},
	"headers": {"url", func(s *entry, n *yaml.Node) error {
		if err := s.values(n, headerName, "a header's name has letters, digits and -", (*entry).addHeader); err != nil {
			return err
		}
		return pairs(n, func(name string, n *yaml.Node) error {
			if f := secretFile(n); f != nil {
				if s.HeaderFiles == nil {
					s.HeaderFiles = map[string]*SecretFile{}
				}
				s.HeaderFiles[http.CanonicalHeaderKey(name)] = f
			}
			return nil
		})
	}},
	"env": {"command", func(s *entry, n *yaml.Node) error {
		return s.values(n, variableName, "a variable's name has letters, digits and _", (*entry).addEnv)
	}},
	"files":     {"command", func(s *entry, n *yaml.Node) error { return list(n, "{path: …, mode: ro or rw}", s.addFile) }},
	"network":   {"command", either("off", "on", func(s *entry) *bool { return &s.NoNetwork })},
	"isolation": {"command", either("none", "box", func(s *entry) *bool { return &s.Plain })},
}

var memberNames = slices.Sorted(maps.Keys(members)) // not members itself: readServer is no part of it

// readServer reads a server that may have no name.
func readServer(n *yaml.Node, getenv func(string) string) (Source, error) {
	s := entry{getenv: getenv}
	err := pairs(n, func(key string, value *yaml.Node) error {
		m, ok := members[key]
		if !ok {
			return fmt.Errorf(": there is no such member: there are %s", strings.Join(memberNames, ", "))
		}
		return m.read(&s, value)
	})
	switch {
	case err != nil:
		return Source{}, err
	case s.URL == "" && s.Command == nil:
		if s.OpenAPI != "" {
			return Source{}, errors.New(": has openapi and no url: name the base URL of the API, since servers of the document are not used")
		}
		return Source{}, errors.New(": has neither url nor command: give it one of them")
	case s.URL != "" && s.Command != nil:
		return Source{}, errors.New(": has both url and command: leave one of them out")
	}
	if s.OpenAPI != "" && s.PrincipalKey != nil {
		return Source{}, errors.New(".principal_hmac: is for servers that speak MCP, and this one has openapi: leave it out")
	}
	if err := s.checkAuth(); err != nil {
		return Source{}, err
	}
	kind := "url"
	if s.URL == "" {
		kind = "command"
	}
	return s.Source, pairs(n, func(key string, _ *yaml.Node) error {
		if only := members[key].only; only != "" && only != kind {
			return fmt.Errorf(": only a server with %s has it, and this one has %s: leave it out", only, kind)
		}
		return nil
	})
}

// text reads one value.
func text(set func(s *entry, text string) error) func(*entry, *yaml.Node) error {
	return func(s *entry, n *yaml.Node) error {
		text, err := scalar(n)
		if err != nil {
			return err
		}
		return value(set(s, text))
	}
}

// value is an error about the value of a member.
func value(err error) error {
	if err != nil {
		return fmt.Errorf(": %w", err)
	}
	return nil
}

// either reads one of two values.
func either(yes, no string, to func(*entry) *bool) func(*entry, *yaml.Node) error {
	return text(func(s *entry, text string) error {
		if text != yes && text != no {
			return fmt.Errorf("must be %s or %s", no, yes)
		}
		*to(s) = text == yes
		return nil
	})
}

// wholeNumber reads a whole number from 1 on.
func wholeNumber(most int, set func(s *entry, n int)) func(*entry, *yaml.Node) error {
	return text(func(s *entry, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("must be a whole number from 1 to %d", most)
		}
		set(s, n)
		return nil
	})
}

// maxServerName bounds a configured name in bytes.
const maxServerName = 32

func (s *entry) setName(text string) error {
	s.Name = text
	if len(text) > maxServerName || !madeOf(text, alphanumeric+"-") {
		return fmt.Errorf("a server's name has 1 to %d letters, digits and -", maxServerName)
	}
	return nil
}

func (s *entry) setURL(text string) (err error) {
	s.URL, err = parseURL(text)
	return err
}

func (s *entry) setOpenAPI(text string) error {
	s.OpenAPI = text
	return nil
}

// setCommand takes a command line, or its words.
func (s *entry) setCommand(n *yaml.Node) error {
	if n = follow(n); n.Kind == yaml.SequenceNode {
		for _, word := range n.Content {
			s.Command = append(s.Command, word.Value)
		}
	} else {
		line, err := scalar(n)
		if err != nil {
			return err
		}
		if s.Command, err = split(line); err != nil {
			return value(err)
		}
	}
	switch {
	case len(s.Command) == 0 || s.Command[0] == "":
		return errors.New(": names no program")
	case isURL(s.Command[0]):
		return errors.New(": a URL is no command: write url in place of command")
	}
	return nil
}

func (s *entry) addTenant(n *yaml.Node) error {
	return text(func(s *entry, text string) error {
		switch {
		case len(text) > 64 || !madeOf(text, alphanumeric+"_.-"):
			return errors.New("a tenant's name has 1 to 64 letters, digits and _ . -")
		case slices.Contains(s.Tenants, text):
			return fmt.Errorf("the tenant %s stands twice: leave one of them out", text)
		}
		s.Tenants = append(s.Tenants, text)
		return nil
	})(s, n)
}

func (s *entry) addEffect(tool string, n *yaml.Node) error {
	return text(func(s *entry, effect string) error {
		if tool == "" || effect != "pure" && effect != "idempotent" && effect != "once" {
			return errors.New("the effect of a tool is pure, idempotent or once")
		}
		if s.Effects == nil {
			s.Effects = map[string]string{}
		}
		s.Effects[tool] = effect
		return nil
	})(s, n)
}

func (s *entry) addTimeout(tool string, n *yaml.Node) error {
	if tool == "" {
		return errors.New(": name a tool: {tool: seconds}")
	}
	return wholeNumber(int(MaxTimeout/time.Second), func(s *entry, n int) {
		if s.Timeouts == nil {
			s.Timeouts = map[string]time.Duration{}
		}
		s.Timeouts[tool] = time.Duration(n) * time.Second
	})(s, n)
}

func (s *entry) addFile(n *yaml.Node) error {
	var f sandbox.ServerFile
	parts := map[string]member{
		"path": {read: text(func(_ *entry, path string) error { f.Path = filepath.Clean(path); return nil })},
		"mode": {read: either("rw", "ro", func(*entry) *bool { return &f.Write })},
	}
	err := pairs(n, func(key string, value *yaml.Node) error {
		part, ok := parts[key]
		if !ok {
			return errors.New(": there is no such member: there are path, mode")
		}
		return part.read(s, value)
	})
	if err == nil && !filepath.IsAbs(f.Path) {
		err = errors.New(".path: must be an absolute path")
	}
	s.Files = append(s.Files, f)
	return err
}

var (
	headerName   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // a token of RFC 9110
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	reference    = regexp.MustCompile(`\$\{([^}]*)(\}?)`)
)

// values reads headers or env. An invalid name may contain a secret, and is not shown.
func (s *entry) values(n *yaml.Node, names *regexp.Regexp, rule string, add func(s *entry, name, value string) error) error {
	nth := 0
	return pairs(n, func(name string, n *yaml.Node) error {
		return s.value(n, func(s *entry, text string) error { return add(s, name, text) })
	}, func(name string) error {
		if nth++; names.MatchString(name) {
			return nil
		}
		return fmt.Errorf(": name %d is none: %s", nth, rule)
	})
}

// value reads a text with ${VARIABLE} in it, or {file: PATH}.
func (s *entry) value(n *yaml.Node, set func(s *entry, text string) error) (err error) {
	if n = follow(n); n.Kind == yaml.MappingNode {
		return s.fileValue(n, set)
	}
	return text(func(s *entry, text string) error {
		text = reference.ReplaceAllStringFunc(text, func(found string) string {
			parts := reference.FindStringSubmatch(found)
			value := s.getenv(parts[1])
			switch {
			case parts[2] == "" || !variableName.MatchString(parts[1]):
				err = errors.New("${ and } enclose the name of a variable")
			case value == "":
				err = fmt.Errorf("the variable %s is not set: set it, or name a file with {file: PATH}", parts[1])
			}
			s.Secrets = append(s.Secrets, value)
			return value
		})
		if err != nil {
			return err
		}
		return set(s, text)
	})(s, n)
}

// secretFile is the file of a value; nil: the value is a text.
func secretFile(n *yaml.Node) *SecretFile {
	if n = follow(n); n.Kind != yaml.MappingNode || len(n.Content) != 2 {
		return nil
	}
	return &SecretFile{Path: follow(n.Content[1]).Value}
}

// fileValue reads a value that stands in a file.
func (s *entry) fileValue(n *yaml.Node, set func(s *entry, text string) error) error {
	path := ""
	err := pairs(n, func(only string, n *yaml.Node) (err error) {
		if only != "file" {
			return errors.New(": there is no such member: there is only file")
		}
		path, err = scalar(n)
		return err
	})
	switch {
	case err != nil:
		return err
	case path == "":
		return errors.New(".file: is missing: name the file that holds the value")
	}
	raw, err := os.ReadFile(path)
	secret := strings.TrimRight(string(raw), "\r\n")
	switch {
	case err != nil:
		return fmt.Errorf(".file: %v: put the value there, or correct the path", err)
	case secret == "":
		return fmt.Errorf(".file: %s is empty: put the value there", path)
	}
	s.Secrets, s.SecretFiles = append(s.Secrets, secret), append(s.SecretFiles, path)
	return value(set(s, secret))
}

func (s *entry) addEnv(name, text string) error {
	if strings.ContainsRune(text, 0) {
		return errors.New("a variable's value has no zero byte")
	}
	s.Env = append(s.Env, name+"="+text)
	return nil
}

// reserved are headers that the protocol or the connection sets itself, so that a
// configured value would have no effect.
var reserved = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Host", "Idempotency-Key", "Keep-Alive",
	"Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// addHeader adds a header. Errors do not show the value.
func (s *entry) addHeader(name, text string) error {
	name = http.CanonicalHeaderKey(name)
	switch {
	case slices.Contains(reserved, name) || strings.HasPrefix(name, "Mcp-"):
		return fmt.Errorf("writ sets %s itself: leave it out", name)
	case s.Header[name] != nil:
		return fmt.Errorf("%s stands twice: leave one of them out", name)
	case !httpguts.ValidHeaderFieldValue(text):
		return errors.New("a header's value is one line, without control characters and not empty")
	}
	if s.Header == nil {
		s.Header = http.Header{}
	}
	s.Header[name] = []string{text}
	s.Secrets = append(s.Secrets, text)
	return nil
}

// shortestKey is how long a key of principals must be, in bytes: a shorter one can be
// guessed.
const shortestKey = 16

func (s *entry) setPrincipalKey(text string) error {
	if len(text) < shortestKey {
		return fmt.Errorf("principal_hmac is a secret of at least %d bytes", shortestKey)
	}
	s.PrincipalKey = []byte(text)
	s.Secrets = append(s.Secrets, text)
	return nil
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// madeOf reports whether a text consists of the given characters only.
func madeOf(s, characters string) bool { return strings.Trim(s, characters) == "" }

// pairs calls a function for each member of a mapping, each name once, and puts the
// name in front of its error. Checks judge the name first, and theirs stands alone.
func pairs(n *yaml.Node, each func(key string, value *yaml.Node) error, checks ...func(key string) error) error {
	if n = follow(n); n.Kind != yaml.MappingNode {
		return errors.New(": must be a mapping, like {name: value}")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		for _, check := range checks {
			if err := check(key); err != nil {
				return err
			}
		}
		if seen[key] {
			return fmt.Errorf(".%s: stands twice: leave one of them out", key)
		}
		seen[key] = true
		if err := each(key, n.Content[i+1]); err != nil {
			return fmt.Errorf(".%s%w", key, err)
		}
	}
	return nil
}

// list calls a function for each element of a list, which must have some.
func list(n *yaml.Node, of string, each func(*yaml.Node) error) error {
	if n = follow(n); n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return fmt.Errorf(": must be a list of %s", of)
	}
	for i, n := range n.Content {
		if err := each(n); err != nil {
			return fmt.Errorf("[%d]%w", i, err)
		}
	}
	return nil
}

// scalar is a text, number or word.
func scalar(n *yaml.Node) (string, error) {
	if n = follow(n); n.Kind != yaml.ScalarNode || n.Value == "" {
		return "", errors.New(": must be one value, and not empty")
	}
	return n.Value, nil
}

// follow resolves an alias.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
