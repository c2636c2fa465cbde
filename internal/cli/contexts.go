package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"aob.dev/writ/internal/durable"
)

// aContext is a writ by name: where it is, and with which key one speaks to it.
type aContext struct {
	URL     string `json:"url,omitempty"`
	Data    string `json:"data,omitempty"`     // data directory on this machine
	KeyFile string `json:"key_file,omitempty"` // file with the API key
}

// contexts is what `writ context` keeps: contexts by name, and which is in use.
type contexts struct {
	Use      string              `json:"use,omitempty"`
	Contexts map[string]aContext `json:"contexts"`
}

// contextsFile is where they are kept; empty where there is no home.
func contextsFile(env func(string) string) string {
	dir := env("XDG_CONFIG_HOME")
	if dir == "" && env("HOME") != "" {
		dir = filepath.Join(env("HOME"), ".config")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "writ", "contexts.json")
}

func readContexts(env func(string) string) (contexts, error) {
	c := contexts{Contexts: map[string]aContext{}}
	path := contextsFile(env)
	if path == "" {
		return c, nil
	}
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the user's own configuration
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return c, fmt.Errorf("contexts: %s: %v", path, err)
	}
	if c.Contexts == nil {
		c.Contexts = map[string]aContext{}
	}
	return c, nil
}

// write replaces the file: a crash leaves the one before.
func (c contexts) write(env func(string) string) error {
	path := contextsFile(env)
	if path == "" {
		return errors.New("contexts: neither XDG_CONFIG_HOME nor HOME says where to keep them")
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return durable.Write(path, append(raw, '\n'))
}

// named is a context by its name.
func (c contexts) named(name string) (aContext, error) {
	x, ok := c.Contexts[name]
	if !ok {
		return x, fmt.Errorf("no context %q%s: see writ context list", name, meant(name, names(c.Contexts)))
	}
	return x, nil
}

func names[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	return out
}
