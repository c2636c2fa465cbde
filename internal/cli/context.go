package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
)

func contextCommand(std IO) *cobra.Command {
	cmd := group("context", "Name the writs that you speak to, and choose one",
		contextList(std), contextUse(std), contextShow(std), contextSet(std), contextRemove(std))
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil } // what is given is stored, and nothing else
	cmd.Long = "Name the writs that you speak to, and choose one: each has a URL, or a data directory\n" +
		"on this machine, and a file with the API key. Flags, --context and the environment\n" +
		"(WRIT_URL, WRIT_DATA, WRIT_API_KEY, WRIT_CONTEXT) count over the one in use."
	return cmd
}

func contextList(std IO) *cobra.Command {
	return answering(std, &cobra.Command{
		Use: "list", Short: "List contexts; * is in use", Args: cobra.NoArgs,
	}, func(*cobra.Command, []string) (answer, error) {
		all, err := readContexts(std.Env)
		if err != nil {
			return answer{}, malformed(err)
		}
		return answer{data: all, text: aligned(func(t io.Writer) {
			for _, name := range slices.Sorted(maps.Keys(all.Contexts)) {
				x, mark := all.Contexts[name], ""
				if name == all.Use {
					mark = "*"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", mark, name, x.URL, x.Data, x.KeyFile)
			}
		})}, nil
	})
}

func contextUse(std IO) *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Choose a context for the commands to come; \"\" for none", Args: cobra.ExactArgs(1),
		ValidArgsFunction: contextNames(std),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeContexts(std, func(all *contexts) error {
				if args[0] != "" {
					if _, err := all.named(args[0]); err != nil {
						return err
					}
				}
				all.Use = args[0]
				return nil
			})
		},
	}
}

func contextShow(std IO) *cobra.Command {
	var url, data, key string
	cmd := answering(std, &cobra.Command{
		Use: "show", Short: "Say which writ commands speak to now, and who says so", Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		t, err := aim(cmd, std)
		t.Key.Value = ""
		return answer{data: t, text: fmt.Sprintf("url   %s (%s)\ndata  %s (%s)\nkey   %s\n", t.URL.Value, t.URL.From, t.Data.Value, t.Data.From, t.Key.From)}, err
	})
	targetFlags(cmd, &url, &data, &key)
	return cmd
}

func contextSet(std IO) *cobra.Command {
	var x aContext
	cmd := &cobra.Command{
		Use: "set NAME [--url URL] [--data DIR] [--key-file FILE]", Short: "Make a context, or change what is given of one", Args: cobra.ExactArgs(1),
		ValidArgsFunction: contextNames(std),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == "" {
				return usage(errors.New("a context needs a name"))
			}
			if x.URL != "" {
				if u, err := url.Parse(x.URL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
					return usage(fmt.Errorf("--url: %q is no http:// or https:// URL", x.URL))
				}
			}
			return changeContexts(std, func(all *contexts) error {
				old := all.Contexts[args[0]]
				for _, m := range []struct {
					to   *string
					from string
					path bool
				}{{&old.URL, x.URL, false}, {&old.Data, x.Data, true}, {&old.KeyFile, x.KeyFile, true}} {
					if m.from == "" {
						continue
					}
					if m.path {
						abs, err := filepath.Abs(m.from)
						if err != nil {
							return err
						}
						m.from = abs
					}
					*m.to = m.from
				}
				if old.URL == "" && old.Data == "" {
					return errors.New("a context names a writ: give --url or --data")
				}
				all.Contexts[args[0]] = old
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&x.URL, "url", "", "where it answers, http://host:port")
	cmd.Flags().StringVar(&x.Data, "data", "", "its data directory, on this machine")
	cmd.Flags().StringVar(&x.KeyFile, "key-file", "", "file with the API key, mode 0600")
	return cmd
}

func contextRemove(std IO) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Forget a context", Args: cobra.ExactArgs(1),
		ValidArgsFunction: contextNames(std),
		RunE: func(_ *cobra.Command, args []string) error {
			return changeContexts(std, func(all *contexts) error {
				if _, err := all.named(args[0]); err != nil {
					return err
				}
				delete(all.Contexts, args[0])
				if all.Use == args[0] {
					all.Use = ""
				}
				return nil
			})
		},
	}
}

func changeContexts(std IO, change func(*contexts) error) error {
	all, err := readContexts(std.Env)
	if err != nil {
		return malformed(err)
	}
	if err := change(&all); err != nil {
		return no(err)
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
