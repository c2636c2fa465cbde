package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/node"
)

func doctorCommand(std IO) *cobra.Command {
	var asJSON bool
	var load func(func(string) string) (config.Config, error)
	cmd := &cobra.Command{
		Use: "doctor", Short: "Find what would keep writ up from running, and prove that it refuses", Args: cobra.NoArgs,
		Long: "Examine configuration, data directory, keys, clock, sandbox, skill servers and policy, and prove\n" +
			"that a forbidden order is refused. Takes the flags of writ up. Exits 1 if\n" +
			"something is wrong.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []node.Finding
			c, err := load(std.Env)
			if err == nil {
				err = c.Validate()
			}
			cfg, err := examined(std, c, err)
			cfg.Secrets = append(cfg.Secrets, configFile(cmd))
			if err != nil {
				list = []node.Finding{{Check: "config", Found: err.Error(), Do: "see docs/configuration.md"}}
			} else {
				list = append([]node.Finding{{Check: "config", OK: true, Found: "every key is known and every value can be"}}, node.Examine(cmd.Context(), cfg)...)
			}
			return printFindings(std, list, asJSON)
		},
	}
	load = configFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print data")
	return cmd
}

// examined is the configuration of the node to examine, or what is wrong with it.
func examined(std IO, c config.Config, err error) (node.Config, error) {
	if err != nil {
		return node.Config{}, err
	}
	c.PolicyLog = "" // a doctor writes nothing
	feed, _, err := policyFeed(std, c)
	if err != nil {
		return node.Config{}, err
	}
	at, err := blobs(c)
	if err != nil {
		return node.Config{}, err
	}
	m, err := newModel(c)
	return node.Config{
		Dir: c.Data, Blobs: at, Catalog: c.Catalog, Skills: c.Skills, Secrets: c.Secrets(), Policy: feed.Main, PolicyExtensions: feed.Extensions,
		Driver: c.Sandbox, Limits: limits(c), Model: m, Now: time.Now, Log: logger(std, c.LogLevel),
	}, err
}

func printFindings(std IO, list []node.Finding, asJSON bool) error {
	healthy := node.Healthy(list)
	if asJSON {
		if err := printJSON(std.Out, struct {
			OK       bool           `json:"ok"`
			Findings []node.Finding `json:"findings"`
		}{healthy, list}); err != nil {
			return err
		}
	} else {
		t := table(std.Out)
		for _, f := range list {
			mark := "ok"
			if !f.OK {
				mark = "WRONG"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\n", mark, f.Check, printable(f.Found))
			if f.Do != "" {
				fmt.Fprintf(t, "\t\t→ %s\n", printable(f.Do))
			}
		}
		flush(t)
	}
	if !healthy {
		return no(errors.New("something is wrong"))
	}
	return nil
}
