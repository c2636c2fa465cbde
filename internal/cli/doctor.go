package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/upkeep"
)

func doctorCommand(c *command) {
	load := c.configFlags(config.Every)
	start := c.Flags().Bool("start-servers", false, "start the skill servers that are commands, and ask them for their tools")
	c.answer = func([]string) (answer, error) {
		cfg, err := load()
		var e upkeep.Examination
		var m *models
		if err == nil {
			e, err = examination(c.std, cfg)
		}
		if err == nil {
			m, err = newModels(cfg, c.configFile(), c.std.Env, nil, nil)
		}
		list := []upkeep.Finding{{Check: "config", Level: upkeep.OK, Found: "all keys are known and all values are possible"}}
		if err != nil {
			list[0] = upkeep.Finding{Check: "config", Level: upkeep.Fail, Found: datadir.Rights(err).Error(), Do: "see docs/configuration.md"}
		} else {
			e.StartServers = *start
			e.Secrets = append(e.Secrets, c.configFile())
			list = append(append(list, e.Run(c.Context())...), m.check(c.Context())...)
		}
		return findingsOf(list), nil
	}
}

// examination is the input of doctor, from a configuration.
func examination(std IO, cfg config.Config) (e upkeep.Examination, err error) {
	servers, secrets, err := skillServers(cfg, std.Env)
	if err != nil {
		return e, err
	}
	docs, err := documents(cfg)
	if err != nil {
		return e, err
	}
	at, err := blobs(cfg)
	return upkeep.Examination{
		Dir: cfg.Data, Blobs: at, Documents: docs, Catalog: cfg.Catalog, Skills: cfg.Skills, SkillServers: servers, Secrets: append(cfg.Secrets(), secrets...), Named: []string{cfg.Agents, cfg.NATSCert}, Policy: policyFeed(cfg),
		Driver: cfg.Sandbox, FreeFloor: limits(cfg).FreeFloor, Now: time.Now, Log: logger(std, cfg.LogLevel, cfg.LogFormat),
	}, err
}

func findingsOf(list []upkeep.Finding) answer {
	healthy := upkeep.Healthy(list)
	a := answer{data: struct {
		OK       bool             `json:"ok"`
		Findings []upkeep.Finding `json:"findings"`
	}{healthy, list}, text: render("findings.table", list)}
	if !healthy {
		a.end = errors.New("something would keep writ from running: see the lines that begin with fail")
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

// healthTime bounds the wait for an answer, so that a probe has one too.
const healthTime = 5 * time.Second

func healthCommand(c *command) {
	c.placeFlags()
	c.answer = func([]string) (answer, error) {
		ctx, cancel := context.WithTimeout(c.Context(), healthTime)
		defer cancel()
		var raw json.RawMessage
		var doc struct{ Status string }
		if err := (client.Client{URL: c.url}).Get(ctx, "/readyz", &raw); err != nil {
			return answer{}, err
		}
		err := json.Unmarshal(raw, &doc)
		return answer{data: raw, text: printable(doc.Status) + "\n"}, err
	}
}
