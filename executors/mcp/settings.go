package mcp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"aob.dev/writ/executors/sandbox"
)

// Settings of a server stand in front of its command or URL, before "--":
//
//	name=git             the name that approvals bind; letters, digits and -
//	env=GITHUB_TOKEN     a variable of our environment that the process gets
//	env=LEVEL=debug      a variable with its value
//	files=/srv/docs      a file or directory that the process may read
//	files=/srv/repo:rw   one that it may write to as well
//	network=off          no network at all
//	isolation=none       a plain child of ours, that sees all that we see
//	effect=commit:once   what a tool does to the world, whatever it says itself:
//	                     pure, idempotent or once
//
// env, files and effect may be repeated.
type Settings struct {
	Name      string
	Env       []string // NAME=value
	Files     []sandbox.ServerFile
	NoNetwork bool
	Plain     bool              // isolation=none: a plain child
	Effects   map[string]string // by tool
}

// settingsEnd separates the settings from the command or URL.
const settingsEnd = "--"

// maxServerName bounds a configured name in bytes.
const maxServerName = 32

// parseSettings reads the settings in front of a command, if the first word is one: a
// command without settings may contain "--" itself.
func parseSettings(words []string) (Settings, []string, error) {
	var s Settings
	if len(words) == 0 || !isSetting(words[0]) {
		return s, words, nil
	}
	for i, word := range words {
		if word == settingsEnd {
			return s, words[i+1:], nil
		}
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			break
		}
		if err := s.set(key, value); err != nil {
			return s, nil, err
		}
	}
	return s, nil, errors.New("settings end with -- before the command or URL, as in: name=git -- mcp-server-git")
}

func isSetting(word string) bool {
	key, _, ok := strings.Cut(word, "=")
	switch key {
	case "name", "env", "files", "network", "isolation", "effect":
		return ok
	}
	return false
}

func (s *Settings) set(key, value string) error {
	switch {
	case key == "name":
		s.Name = value
		return validServerName(value)
	case key == "env":
		return s.addEnv(value)
	case key == "files":
		return s.addFile(value)
	case key == "effect":
		return s.addEffect(value)
	case key == "network" && (value == "on" || value == "off"):
		s.NoNetwork = value == "off"
	case key == "isolation" && (value == "box" || value == "none"):
		s.Plain = value == "none"
	case key == "network":
		return errors.New("network is on or off")
	case key == "isolation":
		return errors.New("isolation is box or none")
	default:
		return fmt.Errorf("no setting %q: there are name, env, files, network, isolation, effect", printable(key, maxServerName))
	}
	return nil
}

// addEnv takes NAME=value, or NAME for the value in our environment.
func (s *Settings) addEnv(text string) error {
	name, _, given := strings.Cut(text, "=")
	if name == "" {
		return errors.New("env takes NAME or NAME=value")
	}
	if !given {
		value, ok := os.LookupEnv(name)
		if !ok {
			return fmt.Errorf("env=%s: the environment has no such variable", printable(name, maxServerName))
		}
		text = name + "=" + value
	}
	s.Env = append(s.Env, text)
	return nil
}

func (s *Settings) addFile(text string) error {
	path, write := strings.CutSuffix(text, ":rw")
	if !filepath.IsAbs(path) {
		return errors.New("files takes an absolute path, followed by :rw if the server may write")
	}
	s.Files = append(s.Files, sandbox.ServerFile{Path: filepath.Clean(path), Write: write})
	return nil
}

func (s *Settings) addEffect(text string) error {
	tool, effect, _ := strings.Cut(text, ":")
	if tool == "" || effect != "pure" && effect != "idempotent" && effect != "once" {
		return errors.New("effect takes a tool and pure, idempotent or once, as in: effect=commit:once")
	}
	if s.Effects == nil {
		s.Effects = map[string]string{}
	}
	s.Effects[tool] = effect
	return nil
}

// ofProcess reports whether there are settings that only a process can have.
func (s *Settings) ofProcess() bool {
	return len(s.Env) > 0 || len(s.Files) > 0 || s.NoNetwork || s.Plain
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// madeOf reports whether a text consists of the given characters only.
func madeOf(s, characters string) bool { return strings.Trim(s, characters) == "" }

func validServerName(name string) error {
	if name == "" || len(name) > maxServerName || !madeOf(name, alphanumeric+"-") {
		return fmt.Errorf("a server's name has 1 to %d letters, digits and -", maxServerName)
	}
	return nil
}
