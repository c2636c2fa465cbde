package mcp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/internal/visible"
)

// Settings of a server precede its command or URL, before "--":
//
//	name=git             the name used by approvals; letters, digits and -
//	env=GITHUB_TOKEN     a variable of our environment that the process gets
//	env=LEVEL=debug      a variable with its value
//	files=/srv/docs      a file or directory that the process may read
//	files=/srv/repo:rw   one that it may write to as well
//	network=off          no network at all
//	isolation=none       a plain child of ours, which sees everything that we see
//	effect=commit:once   the effect of a tool, whatever it declares itself:
//	                     pure, idempotent or once
//	timeout_sec=10       how long one call may take, from 1 to 30
//	rpm=60               how many calls a minute the server gets at most
//	tenant=acme          a tenant that sees its skills; without one: every tenant
//	trust=true           its hints are trusted, see Settings.Trust
//
// env, files, effect and tenant may be repeated. Only a configuration file can set headers and
// principal_hmac, because others can read a command line.
type Settings struct {
	Name      string
	Env       []string // NAME=value
	Files     []sandbox.ServerFile
	NoNetwork bool
	Plain     bool              // isolation=none: a plain child
	Effects   map[string]string // by tool
	Header    http.Header       // of every HTTP request
	Timeout   time.Duration     // of one call; 0: DefaultTimeout
	RPM       int               // calls a minute; 0: any number
	Tenants   []string          // nil: all
	// Trust means that the operator trusts the hints of the server's tools. A hint of any other
	// server is a claim that people are shown and that has no effect.
	Trust bool
	// PrincipalKey is a secret that the server shares, see CallMeta.Principal; nil: none.
	PrincipalKey []byte
	// Secrets are values, or parts of them, that neither logs nor errors show, even where
	// the server itself does.
	Secrets []string
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
		if slices.Contains(onlyInFiles, key) {
			return s, nil, errors.New("headers and principal_hmac stand in the configuration file, because others can read a command line: see docs/skills.md")
		}
		if err := s.Set(key, value); err != nil {
			return s, nil, err
		}
	}
	return s, nil, errors.New("settings end with -- before the command or URL, as in: name=git -- mcp-server-git")
}

// onlyInFiles are settings that have no place in a command line.
var onlyInFiles = []string{"header", "principal_hmac"}

// setters take a setting each, by its key in the short form.
var setters = map[string]func(s *Settings, value string) error{
	"name":           (*Settings).setName,
	"env":            (*Settings).addEnv,
	"files":          (*Settings).addFile,
	"network":        either("network", "off", "on", func(s *Settings, off bool) { s.NoNetwork = off }),
	"isolation":      either("isolation", "none", "box", func(s *Settings, none bool) { s.Plain = none }),
	"effect":         (*Settings).addEffect,
	"timeout_sec":    (*Settings).setTimeout,
	"rpm":            (*Settings).setRPM,
	"tenant":         (*Settings).addTenant,
	"trust":          either("trust", "false", "true", func(s *Settings, no bool) { s.Trust = !no }),
	"header":         (*Settings).addHeader,
	"principal_hmac": (*Settings).setPrincipalKey,
}

// either takes one of two values.
func either(key, yes, no string, set func(*Settings, bool)) func(*Settings, string) error {
	return func(s *Settings, value string) error {
		if value != yes && value != no {
			return fmt.Errorf("%s is %s or %s", key, no, yes)
		}
		set(s, value == yes)
		return nil
	}
}

func isSetting(word string) bool {
	key, _, ok := strings.Cut(word, "=")
	return ok && setters[key] != nil
}

// Set takes one setting, by its key of the short form, or a header as NAME=value.
func (s *Settings) Set(key, value string) error {
	set := setters[key]
	if set == nil {
		known := slices.DeleteFunc(slices.Sorted(maps.Keys(setters)), func(key string) bool { return slices.Contains(onlyInFiles, key) })
		return fmt.Errorf("no setting %q: there are %s", visible.Line(key, maxServerName), strings.Join(known, ", "))
	}
	return set(s, value)
}

func (s *Settings) setName(text string) error {
	s.Name = text
	return validServerName(text)
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
			return fmt.Errorf("env=%s: the environment has no such variable", visible.Line(name, maxServerName))
		}
		text = name + "=" + value
		s.Secrets = append(s.Secrets, value)
	}
	if strings.ContainsRune(text, 0) {
		return errors.New("a variable's value has no zero byte")
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
	at := max(strings.LastIndexByte(text, ':'), 0)
	tool, effect := text[:at], strings.TrimPrefix(text[at:], ":")
	if tool == "" || effect != "pure" && effect != "idempotent" && effect != "once" {
		return errors.New("effect takes a tool and pure, idempotent or once, as in: effect=commit:once")
	}
	if s.Effects == nil {
		s.Effects = map[string]string{}
	}
	s.Effects[tool] = effect
	return nil
}

// reserved are headers that the protocol or the connection sets itself, so that a
// configured value would have no effect.
var reserved = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Host", "Idempotency-Key", "Keep-Alive",
	"Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// addHeader takes NAME=value. Errors do not show the value.
func (s *Settings) addHeader(text string) error {
	name, value, _ := strings.Cut(text, "=")
	if !httpguts.ValidHeaderFieldName(name) {
		return errors.New("a header's name has letters, digits and -")
	}
	name = http.CanonicalHeaderKey(name)
	switch {
	case slices.Contains(reserved, name) || strings.HasPrefix(name, "Mcp-"):
		return fmt.Errorf("writ sets %s itself: leave it out", name)
	case s.Header[name] != nil:
		return fmt.Errorf("%s stands twice: leave one of them out", name)
	case value == "" || !httpguts.ValidHeaderFieldValue(value):
		return errors.New("a header's value is one line, without control characters and not empty")
	}
	if s.Header == nil {
		s.Header = http.Header{}
	}
	s.Header[name] = []string{value}
	s.Secrets = append(s.Secrets, value)
	return nil
}

// setTimeout takes seconds. The router waits no longer for a call than DefaultTimeout.
func (s *Settings) setTimeout(text string) error {
	const most = int(DefaultTimeout / time.Second)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return fmt.Errorf("timeout_sec is a whole number from 1 to %d, since no call may take longer", most)
	}
	s.Timeout = time.Duration(n) * time.Second
	return nil
}

// maxRPM bounds the calls a minute of one server.
const maxRPM = 100_000

func (s *Settings) setRPM(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxRPM {
		return fmt.Errorf("rpm is a whole number from 1 to %d", maxRPM)
	}
	s.RPM = n
	return nil
}

func (s *Settings) addTenant(text string) error {
	switch {
	case text == "" || len(text) > 64 || !madeOf(text, alphanumeric+"_.-"):
		return errors.New("a tenant's name has 1 to 64 letters, digits and _ . -")
	case slices.Contains(s.Tenants, text):
		return fmt.Errorf("the tenant %s stands twice: leave one of them out", text)
	}
	s.Tenants = append(s.Tenants, text)
	return nil
}

// shortestKey is how long a key of principals must be, in bytes: a shorter one can be
// guessed.
const shortestKey = 16

func (s *Settings) setPrincipalKey(text string) error {
	if len(text) < shortestKey {
		return fmt.Errorf("principal_hmac is a secret of at least %d bytes", shortestKey)
	}
	s.PrincipalKey = []byte(text)
	s.Secrets = append(s.Secrets, text)
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
