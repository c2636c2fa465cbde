package cli

import (
	"errors"
	"fmt"
	"os"

	"aob.dev/writ/cell"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/node"
)

var cellRows = []row{
	{use: "create DIR", short: "Make the keys of a cell and its genesis: a directory for each role", make: cellCreate},
	{use: "begin DIR", short: "Begin the log of a cell, and print its first API key once", make: cellBegin},
	{use: "copy CELL DIR", short: "Copy the record of a cell into a data directory, for auditors", make: cellCopy},
	{use: "serve ROLE…", short: "Run some roles in a process of their own, on a NATS cluster", make: serveCommand},
	{use: "accounts --process ROLE:NAME … [--executor NAME …]", short: "Print what a NATS cluster must know of writ's processes", make: accountsCommand},
	{use: "status", short: "Show the log, its copies, the recorder and the routers of a cell", make: cellStatus},
}

func cellCreate(c *command) {
	c.withConfig(func(cfg config.Config, args []string) (answer, error) {
		policy, err := policyFeed(cfg).Engine(c.Context())
		if err != nil {
			return answer{}, malformed(err)
		}
		types, err := catalog.Open(cfg.Catalog)
		if err != nil {
			return answer{}, malformed(err)
		}
		origin, err := cell.Create(args[0], policy, types)
		note := fmt.Sprintf("made %s: give each process the directory of its role alone, and take %s offline\n", args[0], cell.Keys(args[0], "root"))
		return answer{data: map[string]string{"origin": origin}, text: origin + "\n", note: note}, err
	})
}

// inCell has a command be a process of the cell whose keys are in its first argument.
func inCell(c *command, do func(cfg node.Config, args []string) (answer, error)) {
	c.withConfig(func(cfg config.Config, args []string) (answer, error) {
		cfg.Keys = []string{cell.Keys(args[0], "router")}
		cluster, err := clusterOf(cfg)
		if err != nil {
			return answer{}, usage(fmt.Errorf("%s: %w", args[0], err))
		}
		n, _, err := processConfig(c.Context(), c.std, cfg, c.configFile(), extras{})
		if err != nil {
			return answer{}, err
		}
		n.Cluster = cluster
		return do(n, args)
	}, "bootstrap_key", "documents_auth")
}

func cellBegin(c *command) {
	inCell(c, func(n node.Config, args []string) (a answer, err error) {
		if n.Dir, err = os.MkdirTemp("", "writ-cell-*"); err != nil {
			return a, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(n.Dir)) }()
		key, err := node.BeginCell(c.Context(), n, args[0])
		a = answer{data: map[string]string{"key": key}, text: key + "\n", note: "the log of the cell has begun: this is the API key of user local, shown only this once\n"}
		if key == "" {
			a.text, a.note = "", "the log of the cell has begun before, and has an API key\n"
		}
		return a, err
	})
}

func cellCopy(c *command) {
	inCell(c, func(n node.Config, args []string) (answer, error) {
		records, err := cell.Copy{Bus: n.Cluster.Bus, Blobs: n.Blobs, FreeFloor: n.Limits.FreeFloor, Log: n.Log}.Make(c.Context(), args[0], args[1])
		text := fmt.Sprintf("%d records are in %s: check them with writ audit fsck --data %s\n", records, args[1], args[1])
		return answer{data: map[string]any{"records": records, "data": args[1]}, text: text}, err
	})
}

func cellStatus(c *command) {
	c.withConfig(func(cfg config.Config, _ []string) (answer, error) {
		cluster, err := clusterOf(cfg)
		if err != nil {
			return answer{}, usage(err)
		}
		s, err := cell.StatusOf(c.Context(), cluster.Bus, cluster.Keys)
		if err != nil {
			return answer{}, err
		}
		return answer{data: s, text: render("cell", s), end: unless(s.Router != "" && s.Recorder != "", "the cell is not whole")}, nil
	})
}
