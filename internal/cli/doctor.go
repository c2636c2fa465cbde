package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/upkeep"
)

func doctorCommand(std IO) *cobra.Command {
	var load func(func(string) string) (config.Config, error)
	cmd := answering(std, &cobra.Command{
		Use: "doctor", Short: "Find what would keep writ up from running, and prove that it refuses", Args: cobra.NoArgs,
		Long: "Examine configuration, data directory, keys, clock, sandbox, skill servers and policy, and prove\n" +
			"that a forbidden order is refused. Takes the flags of writ up. Exits 1 if\n" +
			"something is wrong.",
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		c, err := load(std.Env)
		if err == nil {
			err = c.Validate()
		}
		e, err := examination(std, c, err)
		e.Secrets = append(e.Secrets, configFile(cmd))
		list := []upkeep.Finding{{Check: "config", OK: true, Found: "every key is known and every value can be"}}
		if err != nil {
			list[0] = upkeep.Finding{Check: "config", Found: err.Error(), Do: "see docs/configuration.md"}
		} else {
			list = append(list, e.Run(cmd.Context())...)
		}
		return findingsOf(list), nil
	})
	load = configFlags(cmd)
	return cmd
}

// examination is of what a configuration says, unless something is wrong with that.
func examination(std IO, c config.Config, err error) (e upkeep.Examination, _ error) {
	if err != nil {
		return e, err
	}
	c.PolicyLog = "" // a doctor writes nothing
	feed, _, err := policyFeed(std, c)
	if err != nil {
		return e, err
	}
	at, err := blobs(c)
	if err != nil {
		return e, err
	}
	_, err = newModel(c)
	return upkeep.Examination{
		Dir: c.Data, Blobs: at, Catalog: c.Catalog, Skills: c.Skills, Secrets: c.Secrets(), Policy: feed.Main, PolicyExtensions: feed.Extensions,
		Driver: c.Sandbox, FreeFloor: limits(c).FreeFloor, Now: time.Now, Log: logger(std, c.LogLevel),
	}, err
}

func findingsOf(list []upkeep.Finding) answer {
	healthy := upkeep.Healthy(list)
	a := answer{data: struct {
		OK       bool             `json:"ok"`
		Findings []upkeep.Finding `json:"findings"`
	}{healthy, list}, text: aligned(func(t io.Writer) {
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
	})}
	if !healthy {
		a.end = errors.New("something is wrong")
	}
	return a
}
