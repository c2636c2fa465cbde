package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SkillServer is an entry of skills with members, which only the file can have. Only Resolve reads
// values from variables and files, so that commands that need no skill servers need none of their
// secrets.
type SkillServer struct {
	Place        string // for messages, like "configuration writ.yaml: skills[0]"
	URL, Command string // one of them
	Settings     []SkillSetting
}

// SkillSetting is one setting of a server. Key and Value are those of the short form of
// --skills, and beside them header (NAME=value) and principal_hmac.
type SkillSetting struct {
	Path       string // of its member, like "env.LEVEL"
	Key, Value string
	File       string   // this file has the end of Value
	Secrets    []string // parts of Value read by Resolve, never shown
}

// The members of an entry, by the kind of server that can have them.
var (
	ofAll     = []string{"name", "url", "command", "tenants", "timeout_sec", "rpm", "effects", "trust", "principal_hmac"}
	ofURL     = []string{"headers"}
	ofCommand = []string{"env", "files", "network", "isolation"}
)

// skillEntries divides the entries of skills: texts stay in the list, and those with
// members are read.
func skillEntries(list *yaml.Node, path string) (servers []SkillServer, err error) {
	if list.Kind != yaml.SequenceNode {
		return nil, nil // refused by the caller
	}
	texts := []*yaml.Node{}
	names := map[string]int{}
	for i, n := range list.Content {
		if n = follow(n); n.Kind != yaml.MappingNode {
			texts = append(texts, n)
			continue
		}
		at := fmt.Sprintf("skills[%d]", i)
		s := SkillServer{Place: "configuration " + path + ": " + at}
		name, err := s.read(n)
		if err != nil {
			return nil, fmt.Errorf("%s%w", at, err)
		}
		if other, taken := names[name]; taken {
			return nil, fmt.Errorf("%s.name: %q is the name of skills[%d] already: give each server a name of its own", at, name, other)
		}
		names[name] = i
		servers = append(servers, s)
	}
	list.Content = texts
	return servers, nil
}

// read takes the members of an entry. Errors begin with the path below it, and never
// show a value.
func (s *SkillServer) read(n *yaml.Node) (name string, err error) {
	err = members(n, func(key string, value *yaml.Node) error {
		switch key {
		case "name", "url", "command", "timeout_sec", "rpm", "trust", "network", "isolation":
			text, err := scalar(value)
			switch {
			case err != nil:
				return err
			case key == "url":
				s.URL = text
			case key == "command":
				s.Command = text
			case key == "name":
				name = text
				fallthrough
			default:
				s.Settings = append(s.Settings, SkillSetting{Path: "." + key, Key: key, Value: text})
			}
			return nil
		case "headers":
			return s.values(value, key, "header", headerName, "a header's name has letters, digits and -")
		case "env":
			return s.values(value, key, "env", variableName, "a variable's name has letters, digits and _")
		case "effects":
			return members(value, func(tool string, value *yaml.Node) error {
				effect, err := scalar(value)
				s.Settings = append(s.Settings, SkillSetting{Path: ".effects." + tool, Key: "effect", Value: tool + ":" + effect})
				return err
			})
		case "files":
			return s.files(value)
		case "tenants":
			return s.tenants(value)
		case "principal_hmac":
			return s.value(value, SkillSetting{Path: "." + key, Key: key})
		}
		return fmt.Errorf(": there is no such member: there are %s", strings.Join(slices.Concat(ofAll, ofURL, ofCommand), ", "))
	})
	switch {
	case err != nil:
		return "", err
	case name == "":
		return "", errors.New(".name: is missing: give the server a name, which approvals bind")
	case s.URL == "" && s.Command == "":
		return "", errors.New(": has neither url nor command: give it one of them")
	case s.URL != "" && s.Command != "":
		return "", errors.New(": has both url and command: leave one of them out")
	}
	kind, other, private := "url", "command", ofCommand
	if s.Command != "" {
		kind, other, private = "command", "url", ofURL
	}
	return name, members(n, func(key string, _ *yaml.Node) error {
		if slices.Contains(private, key) {
			return fmt.Errorf(": only a server with %s has it, and this one has %s: leave it out", other, kind)
		}
		return nil
	})
}

var (
	headerName   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // a token of RFC 9110
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	reference    = regexp.MustCompile(`\$\{([^}]*)(\}?)`)
)

// values reads headers or env. An invalid name may contain a secret, and is not shown.
func (s *SkillServer) values(n *yaml.Node, member, key string, names *regexp.Regexp, rule string) error {
	nth := 0
	return members(n, func(name string, value *yaml.Node) error {
		nth++
		return s.value(value, SkillSetting{Path: "." + member + "." + name, Key: key, Value: name + "="})
	}, func(name string) error {
		if names.MatchString(name) {
			return nil
		}
		return fmt.Errorf(": name %d is none: %s", nth+1, rule)
	})
}

// value reads a text with ${VAR} in it, or {file: PATH}, which is appended to the setting's value.
func (s *SkillServer) value(n *yaml.Node, set SkillSetting) (err error) {
	if n = follow(n); n.Kind != yaml.MappingNode {
		text, err := scalar(n)
		set.Value += text
		s.Settings = append(s.Settings, set)
		return err
	}
	err = members(n, func(only string, path *yaml.Node) (err error) {
		if only != "file" {
			return errors.New(": there is no such member: there is only file")
		}
		set.File, err = scalar(path)
		return err
	})
	if err == nil && set.File == "" {
		err = errors.New(".file: is missing: name the file that holds the value")
	}
	s.Settings = append(s.Settings, set)
	return err
}

func (s *SkillServer) tenants(n *yaml.Node) error {
	if n = follow(n); n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return errors.New(": must be a list of tenants: leave it out for all")
	}
	for i, n := range n.Content {
		at := fmt.Sprintf("[%d]", i)
		tenant, err := scalar(n)
		if err != nil {
			return fmt.Errorf("%s%w", at, err)
		}
		s.Settings = append(s.Settings, SkillSetting{Path: ".tenants" + at, Key: "tenant", Value: tenant})
	}
	return nil
}

func (s *SkillServer) files(n *yaml.Node) error {
	if n = follow(n); n.Kind != yaml.SequenceNode {
		return errors.New(": must be a list of {path: …, mode: ro or rw}")
	}
	for i, n := range n.Content {
		at, path, mode := fmt.Sprintf("[%d]", i), "", "ro"
		err := members(n, func(key string, value *yaml.Node) (err error) {
			switch key {
			case "path":
				path, err = scalar(value)
			case "mode":
				mode, err = scalar(value)
				if err == nil && mode != "ro" && mode != "rw" {
					err = fmt.Errorf(": %q is neither ro nor rw", mode)
				}
			default:
				err = errors.New(": there is no such member: there are path, mode")
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s%w", at, err)
		}
		if mode == "rw" {
			path += ":rw"
		}
		s.Settings = append(s.Settings, SkillSetting{Path: ".files" + at + ".path", Key: "files", Value: path})
	}
	return nil
}

// skillSecrets are the files that values of skill servers stand in.
func (c Config) skillSecrets() (list []string) {
	for _, s := range c.SkillServers {
		for _, set := range s.Settings {
			if set.File != "" {
				list = append(list, set.File)
			}
		}
	}
	return list
}

// Resolve gives the settings with the values of variables and files in them.
func (s *SkillServer) Resolve(getenv func(string) string) ([]SkillSetting, error) {
	list := slices.Clone(s.Settings)
	for i := range list {
		if err := list[i].resolve(getenv); err != nil {
			return nil, fmt.Errorf("%s%s%w", s.Place, list[i].Path, err)
		}
	}
	return list, nil
}

func (s *SkillSetting) resolve(getenv func(string) string) (err error) {
	if s.Key != "header" && s.Key != "env" && s.Key != "principal_hmac" {
		return nil
	}
	if s.File != "" {
		raw, err := os.ReadFile(s.File)
		text := strings.TrimRight(string(raw), "\r\n")
		switch {
		case err != nil:
			return fmt.Errorf(".file: %v: put the value there, or correct the path", err)
		case text == "":
			return fmt.Errorf(".file: %s is empty: put the value there", s.File)
		}
		s.Value += text
		s.Secrets = []string{text}
		return nil
	}
	name, text := "", s.Value
	if s.Key != "principal_hmac" {
		i := strings.IndexByte(s.Value, '=') + 1
		name, text = s.Value[:i], s.Value[i:]
	}
	text = reference.ReplaceAllStringFunc(text, func(found string) string {
		parts := reference.FindStringSubmatch(found)
		value := getenv(parts[1])
		switch {
		case parts[2] == "" || !variableName.MatchString(parts[1]):
			err = errors.New(": ${ and } enclose the name of a variable")
		case value == "":
			err = fmt.Errorf(": the variable %s is not set: set it, or name a file with {file: PATH}", parts[1])
		}
		s.Secrets = append(s.Secrets, value)
		return value
	})
	s.Value = name + text
	return err
}

// members calls a function for each member of a mapping, each name once, and puts the
// name in front of its error. Checks judge the name first, and theirs stands alone.
func members(n *yaml.Node, each func(key string, value *yaml.Node) error, checks ...func(key string) error) error {
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
