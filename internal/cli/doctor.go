package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/upkeep"
)

func doctorCommand(c *command) {
	load := c.configFlags()
	c.answer = func([]string) (answer, error) {
		cfg, err := load()
		var e upkeep.Examination
		if err == nil {
			e, err = examination(c.std, cfg)
		}
		list := []upkeep.Finding{{Check: "config", OK: true, Found: "all keys are known and all values are possible"}}
		if err != nil {
			list[0] = upkeep.Finding{Check: "config", Found: err.Error(), Do: "see docs/configuration.md"}
		} else {
			e.Secrets = append(e.Secrets, c.configFile())
			list = append(list, e.Run(c.Context())...)
		}
		return findingsOf(list), nil
	}
}

// examination is what a configuration asks doctor to check.
func examination(std IO, cfg config.Config) (e upkeep.Examination, err error) {
	feed, err := policyFeed(cfg)
	if err != nil {
		return e, err
	}
	at, err := blobs(cfg)
	if err != nil {
		return e, err
	}
	_, err = newModel(cfg)
	return upkeep.Examination{
		Dir: cfg.Data, Blobs: at, Catalog: cfg.Catalog, Skills: cfg.Skills, Secrets: cfg.Secrets(), Policy: feed.Main, PolicyExtensions: feed.Extensions,
		Driver: cfg.Sandbox, FreeFloor: limits(cfg).FreeFloor, Now: time.Now, Log: logger(std, cfg.LogLevel),
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

// confirmWait is how long a running writ has to read a confirmation.
const confirmWait = 10 * time.Second

func confirmCommand(c *command) {
	c.dataFlag()
	c.ValidArgs = datadir.Confirmable
	c.answer = func(args []string) (answer, error) {
		ctx, cancel := context.WithTimeout(c.Context(), confirmWait)
		defer cancel()
		err := datadir.Confirm(ctx, c.dir, args[0], time.Now)
		return answer{data: map[string]string{"confirmed": args[0]}, note: args[0] + " is confirmed\n"}, err
	}
}
