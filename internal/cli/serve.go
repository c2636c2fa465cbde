package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"aob.dev/writ/cell"
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
	return runNode(ctx, std, c, file, extras{}, cluster, func(std IO, n *node.Node, _ *models, took time.Duration) {
		fmt.Fprintf(std.Err, "%s as %s on http://%s in %.1f s\n", painter(std, std.Err).bold(strings.Join(roles, ", ")), c.Instance, n.Addr(), took.Seconds())
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
