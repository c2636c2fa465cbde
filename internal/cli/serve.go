package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/node"
)

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
	std, dropped, flush := served(std, c.LogLevel)
	defer flush()
	cfg, _, err := processConfig(ctx, std, c, file, extras{})
	if err != nil {
		return err
	}
	cfg.Cluster, cfg.Dropped = cluster, dropped
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	sent, err := sendTelemetry(ctx, c, n, cfg.Log)
	if err != nil {
		return errors.Join(err, n.Close())
	}
	defer sent()
	started, ready, ended := time.Now(), make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Run(ctx, ready) }()
	select {
	case <-ready:
		fmt.Fprintf(std.Err, "%s as %s on http://%s in %.1f s\n", painter(std, std.Err).bold(strings.Join(roles, ", ")), c.Instance, n.Addr(), time.Since(started).Seconds())
		err = <-ended
	case err = <-ended:
	}
	return errors.Join(err, n.Close())
}

// clusterOf is what the configuration says of the cluster. What is kept in one process
// alone is refused.
func clusterOf(c config.Config) (*node.Cluster, error) {
	out := &node.Cluster{
		Bus: node.BusAt{URLs: c.Bus, Seeds: c.BusKeys, Instance: c.Instance}, Keys: c.Keys, Routers: c.Routers, Recorders: c.Recorders,
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
		return nil, errors.New("nats: writ serve has no server of its own: name the cluster with --bus")
	case len(c.Keys) == 0:
		return nil, errors.New("keys: name the directory of each role's keys with --keys: writ cell create makes them")
	}
	return out, nil
}

var cellRows = []row{
	{use: "create DIR", short: "Make the keys of a cell and its genesis: a directory for each role", make: cellCreate},
	{use: "begin DIR", short: "Begin the log of a cell, and print its first API key once", make: cellBegin},
	{use: "copy CELL DIR", short: "Copy the record of a cell into a data directory, for auditors", make: cellCopy},
	{use: "move-tenant TENANT OLD NEW", short: "Move a tenant from one cell to another", make: cellMoveTenant},
	{use: "status", short: "Show the log, its copies, the recorder and the routers of a cell", make: cellStatus},
}

func cellCreate(c *command) {
	load := c.configFlags("policy_token")
	c.run = func(args []string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		feed, err := policyFeed(cfg)
		if err != nil {
			return malformed(err)
		}
		policy, err := feed.Engine(c.Context())
		if err != nil {
			return malformed(err)
		}
		types, err := catalog.Open(cfg.Catalog)
		if err != nil {
			return malformed(err)
		}
		origin, err := node.CreateCell(args[0], policy, types)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.std.Err, "made %s: give each process the directory of its role alone, and take %s offline\n", args[0], node.CellKeys(args[0], "root"))
		_, err = fmt.Fprintln(c.std.Out, origin)
		return err
	}
}

// inCell has a command be a process of the cell whose keys are in its first argument.
func inCell(c *command, do func(cfg node.Config, args []string) error) {
	load := c.configFlags("bootstrap_key", "documents_auth", "policy_token")
	c.run = func(args []string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		n, err := c.ofCell(cfg, c.configFile(), args[0])
		if err != nil {
			return err
		}
		return do(n, args)
	}
}

// ofCell is the configuration of a process of the cell whose keys are in a directory.
func (c *command) ofCell(cfg config.Config, file, dir string) (n node.Config, err error) {
	cfg.Keys = []string{node.CellKeys(dir, "router")}
	cluster, err := clusterOf(cfg)
	if err != nil {
		return n, usage(fmt.Errorf("%s: %w", dir, err))
	}
	n, _, err = processConfig(c.Context(), c.std, cfg, file, extras{})
	n.Cluster = cluster
	return n, err
}

func cellBegin(c *command) {
	inCell(c, func(n node.Config, args []string) (err error) {
		if n.Dir, err = os.MkdirTemp("", "writ-cell-*"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(n.Dir)) }()
		key, err := node.BeginCell(c.Context(), n, args[0])
		if err != nil {
			return err
		}
		if key == "" {
			fmt.Fprintln(c.std.Err, "the log of the cell has begun before, and has an API key")
			return nil
		}
		fmt.Fprintln(c.std.Err, "the log of the cell has begun: this is the API key of user local, shown only this once")
		_, err = fmt.Fprintln(c.std.Out, key)
		return err
	})
}

func cellCopy(c *command) {
	inCell(c, func(n node.Config, args []string) error {
		records, err := node.CopyCell(c.Context(), n, args[0], args[1])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.std.Out, "%d records are in %s: check them with writ audit fsck --data %s\n", records, args[1], args[1])
		return err
	})
}

func cellStatus(c *command) {
	load := c.configFlags()
	c.answer = func([]string) (answer, error) {
		cfg, err := load()
		if err != nil {
			return answer{}, err
		}
		cluster, err := clusterOf(cfg)
		if err != nil {
			return answer{}, usage(err)
		}
		s, err := node.CellStatus(c.Context(), cluster)
		if err != nil {
			return answer{}, err
		}
		a := answer{data: s}
		a.text = fmt.Sprintf("origin    %s\njournal   %d groups of records, in %d copies", s.Origin, s.Groups, s.Replicas)
		if s.Leader != "" {
			a.text += ", first on " + s.Leader
		}
		if len(s.Behind) > 0 {
			a.text += ", behind: " + strings.Join(s.Behind, ", ")
		}
		recorder := "none"
		if s.Recorder != "" {
			recorder = s.Recorder
		}
		a.text += fmt.Sprintf("\nrecorder  %s, at record %d\nrouters   %s\n", recorder, s.Reached, strings.Join(s.Routers, ", "))
		a.end = unless(len(s.Routers) > 0 && s.Recorder != "", "the cell is not whole")
		return a, nil
	}
}
