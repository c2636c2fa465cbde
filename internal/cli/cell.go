package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"aob.dev/writ/cell"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/node"
)

var cellRows = []row{
	{use: "create DIR", short: "Make the keys of a cell and its genesis: a directory for each role", make: cellCreate},
	{use: "begin DIR", short: "Begin the log of a cell, and print its first API key once", make: cellBegin},
	{use: "copy CELL DIR", short: "Copy the record of a cell into a data directory, for auditors", make: cellCopy},
	{use: "serve ROLE…", short: "Run some roles in a separate process, on a NATS cluster", make: serveCommand},
	{use: "accounts --process ROLE:NAME … [--executor NAME …]", short: "Print the accounts that a NATS cluster needs for writ's processes", make: accountsCommand},
	{use: "status", short: "Show the log, its copies, the recorder and the routers of a cell", make: cellStatus},
}

func cellCreate(c *command) {
	c.withConfig(func(cfg config.Config, args []string) (answer, error) {
		policy, err := policyFeed(cfg).Engine()
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

func serveCommand(c *command) {
	load := c.configFlags(config.Every)
	c.run = func(roles []string) error {
		if err := node.CheckRoles(roles); err != nil {
			return usage(err)
		}
		cfg, err := load()
		if err != nil {
			return err
		}
		return serve(c.Context(), c.std, cfg, c.configFile(), roles)
	}
}

// serve runs some roles until ctx ends.
func serve(ctx context.Context, std IO, c config.Config, file string, roles []string) error {
	cluster, err := clusterOf(c)
	if err != nil {
		return usage(err)
	}
	cluster.Roles = roles
	return runNode(ctx, std, c, file, extras{}, cluster, func(std IO, n *node.Node, _ *models, took time.Duration) {
		fmt.Fprintf(std.Err, "%s as %s on %s in %.1f s\n", painter(std, std.Err).bold(strings.Join(roles, ", ")), c.Instance, n.URL(), took.Seconds())
	})
}

// clusterOf is the cluster of the configuration. Stores that only one process can use are refused.
func clusterOf(c config.Config) (*node.Cluster, error) {
	out := &node.Cluster{
		Bus: cell.Bus{URLs: c.Bus, Seeds: c.BusKeys, Instance: c.Instance}, Keys: c.Keys, Routers: c.Routers, Recorders: c.Recorders,
	}
	if c.BusCA != "" {
		var err error
		if out.Bus.CA, err = os.ReadFile(c.BusCA); err != nil {
			return nil, fmt.Errorf("bus_ca: %w", err)
		}
	}
	if err := out.Bus.Validate(); err != nil {
		return nil, err
	}
	switch at, err := blobs(c); {
	case err != nil:
		return nil, err
	case at.Local():
		return nil, errors.New("blobs: the processes of a cluster share an object store: name it with --blobs s3://… or --blobs nats://…")
	case c.Documents == "":
		return nil, errors.New("documents: the processes of a cluster share an OpenSearch: name it with --documents URL")
	case c.NATS != "":
		return nil, errors.New("nats: writ admin cell serve has no server of its own: name the cluster with --bus")
	case len(c.Keys) == 0:
		return nil, errors.New("keys: name the directory of each role's keys with --keys: writ admin cell create makes them")
	}
	return out, nil
}

func accountsCommand(c *command) {
	var processes, executors []string
	var dir string
	var f catalogFlags
	c.answer = func([]string) (answer, error) {
		outside := map[string][]string{}
		for _, e := range executors {
			name, list, _ := strings.Cut(e, ":")
			var named []string
			if list != "" {
				named = strings.Split(list, ",")
			}
			types, err := typesOf(c.Context(), &f, name, named)
			if err != nil {
				return answer{}, usage(fmt.Errorf("--executor %s: %w", e, err))
			}
			outside[name] = types
		}
		config, made, err := cell.Accounts(processes, outside, dir)
		if err != nil {
			return answer{}, usage(err)
		}
		a := answer{data: map[string]any{"config": string(config), "made": append([]string{}, made...)}, text: string(config)}
		for _, file := range made {
			a.note += fmt.Sprintf("made the key %s: give it to that process alone\n", file)
		}
		return a, nil
	}
	c.Flags().StringArrayVar(&processes, "process", nil, "ROLE:NAME of a process (repeatable)")
	c.Flags().StringArrayVar(&executors, "executor", nil, "external executor NAME, or NAME:TYPE,TYPE for some of its types alone (repeatable)")
	f.add(c)
	c.Flags().StringVar(&dir, "keys", "nats-keys", "directory of the processes' keys; missing ones are made")
	c.mustGive("process")
}
