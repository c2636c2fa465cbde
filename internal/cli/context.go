package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/durable"
)

func contextList(c *command) {
	c.answer = func([]string) (answer, error) {
		all, err := readContexts(c.std.Env)
		if err != nil {
			return answer{}, malformed(err)
		}
		return answer{data: all, text: render("contexts.table", all)}, nil
	}
}

func contextUse(c *command) {
	c.run = func(args []string) error {
		return changeContexts(c.std, func(all *contexts) error {
			if args[0] != "" {
				if _, err := all.named(args[0]); err != nil {
					return err
				}
			}
			all.Use = args[0]
			return nil
		})
	}
}

func contextShow(c *command) {
	c.personFlags()
	c.answer = func([]string) (answer, error) {
		t, err := aim(c.Command, c.std)
		t.Key.Value = ""
		return answer{data: t, text: fmt.Sprintf("url   %s (%s)\ndata  %s (%s)\nkey   %s\n", t.URL.Value, t.URL.From, t.Data.Value, t.Data.From, t.Key.From)}, err
	}
}

func contextSet(c *command) {
	var x aContext
	c.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // the flags are stored, and nothing else
	c.run = func(args []string) error {
		if args[0] == "" {
			return usage(errors.New("a context needs a name"))
		}
		if x.URL != "" {
			if u, err := url.Parse(x.URL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
				return usage(fmt.Errorf("--url: %q is not an http:// or https:// URL", x.URL))
			}
		}
		return changeContexts(c.std, func(all *contexts) error {
			old := all.Contexts[args[0]]
			old.URL = cmp.Or(x.URL, old.URL)
			for _, m := range []struct{ to, from *string }{{&old.Data, &x.Data}, {&old.KeyFile, &x.KeyFile}} {
				if *m.from == "" {
					continue
				}
				abs, err := filepath.Abs(*m.from)
				if err != nil {
					return err
				}
				*m.to = abs
			}
			if old.URL == "" && old.Data == "" {
				return errors.New("a context must name a writ: give --url or --data")
			}
			all.Contexts[args[0]] = old
			return nil
		})
	}
	c.Flags().StringVar(&x.URL, "url", "", "URL of the writ, http://host:port")
	c.Flags().StringVar(&x.Data, "data", "", "data directory of the writ, on this machine")
	c.Flags().StringVar(&x.KeyFile, "key-file", "", "file with the API key, mode 0600")
}

func contextRemove(c *command) {
	c.run = func(args []string) error {
		return changeContexts(c.std, func(all *contexts) error {
			if _, err := all.named(args[0]); err != nil {
				return err
			}
			delete(all.Contexts, args[0])
			if all.Use == args[0] {
				all.Use = ""
			}
			return nil
		})
	}
}

func changeContexts(std IO, change func(*contexts) error) error {
	all, err := readContexts(std.Env)
	if err != nil {
		return malformed(err)
	}
	if err := change(&all); err != nil {
		return err
	}
	return all.write(std.Env)
}

// contextNames completes names of contexts.
func contextNames(std IO) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		all, err := readContexts(std.Env)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(all.Contexts)), cobra.ShellCompDirectiveNoFileComp
	}
}

// aContext is a writ with a name: where it is, and the key to use.
type aContext struct {
	URL     string `json:"url,omitempty"`
	Data    string `json:"data,omitempty"`     // data directory on this machine
	KeyFile string `json:"key_file,omitempty"` // file with the API key
}

// contexts is what `writ context` stores: contexts by name, and which is in use.
type contexts struct {
	Use      string              `json:"use,omitempty"`
	Contexts map[string]aContext `json:"contexts"`
}

// contextsFile is where they are stored; empty if there is no home directory.
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
	if _, err := durable.ReadJSON(path, &c); err != nil {
		return c, fmt.Errorf("contexts: %v", err)
	}
	if c.Contexts == nil {
		c.Contexts = map[string]aContext{}
	}
	return c, nil
}

// write replaces the file. A crash leaves the old one.
func (c contexts) write(env func(string) string) error {
	path := contextsFile(env)
	if path == "" {
		return errors.New("contexts: they cannot be stored, since neither XDG_CONFIG_HOME nor HOME is set")
	}
	return durable.WriteJSON(path, c)
}

// named is a context by its name.
func (c contexts) named(name string) (aContext, error) {
	x, ok := c.Contexts[name]
	if !ok {
		return x, fmt.Errorf("no context %q%s: see writ context list", name, meant(name, slices.Collect(maps.Keys(c.Contexts))))
	}
	return x, nil
}
