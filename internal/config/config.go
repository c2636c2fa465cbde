// Package config reads the configuration of a serving process: flags over
// environment over file (writ.yaml) over defaults. Unknown keys are refused.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Config of `writ up`. The zero value is not usable; begin with Default.
type Config struct {
	Data     string   `yaml:"data"`      // data directory
	Listen   string   `yaml:"listen"`    // HTTP, host:port
	NATS     string   `yaml:"nats"`      // host:port of a NATS listener; empty: none
	Skills   []string `yaml:"skills"`    // skill servers: URLs of streamable HTTP, or commands
	Policies string   `yaml:"policies"`  // directory of policies in place of the embedded ones
	Sandbox  string   `yaml:"sandbox"`   // weakest sandbox driver accepted
	Model    string   `yaml:"model"`     // offline, or openai:<model name>
	ModelURL string   `yaml:"model_url"` // base URL of an OpenAI-compatible API
	ModelKey string   `yaml:"model_key"` // its key; better in the environment
	LogLevel string   `yaml:"log_level"` // debug, info, warn, error
}

// Default values (DEP-01, DEP-09).
func Default() Config {
	return Config{Data: ".writ", Listen: "127.0.0.1:8080", Model: "offline", ModelURL: "https://api.openai.com/v1", LogLevel: "info"}
}

// variable is one environment variable and what it sets. The first name is
// ours; the others are those of the source documents (C-37, C-39, DEP-01, DEP-09).
type variable struct {
	names []string
	set   func(c *Config, value string)
}

var variables = []variable{
	{[]string{"WRIT_DATA"}, func(c *Config, v string) { c.Data = v }},
	{[]string{"PORT"}, func(c *Config, v string) { c.Listen = net.JoinHostPort(c.host(), v) }},
	{[]string{"WRIT_LISTEN"}, func(c *Config, v string) { c.Listen = v }},
	{[]string{"WRIT_NATS"}, func(c *Config, v string) { c.NATS = v }},
	{[]string{"WRIT_SKILLS", "SKILL_SERVICE_URL", "cloud_skill_service", "CLOUD_SKILL_SERVICE"}, func(c *Config, v string) { c.Skills = lines(v) }},
	{[]string{"WRIT_POLICIES"}, func(c *Config, v string) { c.Policies = v }},
	{[]string{"WRIT_SANDBOX"}, func(c *Config, v string) { c.Sandbox = v }},
	{[]string{"WRIT_MODEL"}, func(c *Config, v string) { c.Model = v }},
	{[]string{"WRIT_MODEL_URL"}, func(c *Config, v string) { c.ModelURL = v }},
	{[]string{"WRIT_MODEL_KEY"}, func(c *Config, v string) { c.ModelKey = v }},
	{[]string{"WRIT_LOG_LEVEL", "LOG_LEVEL"}, func(c *Config, v string) { c.LogLevel = v }},
}

// host to listen on, as far as it is known.
func (c Config) host() string {
	if host, _, err := net.SplitHostPort(c.Listen); err == nil {
		return host
	}
	return "127.0.0.1"
}

// lines splits a list in one variable: one entry a line, or separated by ";".
func lines(v string) []string {
	var out []string
	for s := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == '\n' || r == ';' }) {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Load reads file and environment over the defaults. An empty path means
// writ.yaml in the working directory, which may be missing.
func Load(path string, getenv func(string) string) (Config, error) {
	c := Default()
	named := path != ""
	if !named {
		path = "writ.yaml"
	}
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the file
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
	case err != nil:
		return c, fmt.Errorf("configuration: %w", err)
	default:
		if err := decode(raw, &c); err != nil {
			return c, fmt.Errorf("configuration %s: %v", path, err)
		}
	}
	for _, v := range variables {
		for i := len(v.names) - 1; i >= 0; i-- {
			if value := getenv(v.names[i]); value != "" {
				v.set(&c, value)
			}
		}
	}
	return c, nil
}

// decode reads one YAML document, which may be empty. What stands in a second
// one would be ignored, so there must be none.
func decode(raw []byte, c *Config) error {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(c); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if err := dec.Decode(new(Config)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

// Validate says what is wrong, with the key at fault.
func (c Config) Validate() error {
	if c.Data == "" {
		return errors.New("data: names no directory")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("listen: %q is not host:port", c.Listen)
	}
	if _, _, err := net.SplitHostPort(c.NATS); c.NATS != "" && err != nil {
		return fmt.Errorf("nats: %q is not host:port", c.NATS)
	}
	if name, remote := strings.CutPrefix(c.Model, "openai:"); c.Model != "offline" && (!remote || name == "") {
		return fmt.Errorf("model: %q is neither \"offline\" nor \"openai:<model name>\"", c.Model)
	}
	switch c.LogLevel {
	case "debug", "info", "warn", "error":
		return nil
	default:
		return fmt.Errorf("log_level: %q is none of debug, info, warn, error", c.LogLevel)
	}
}
