package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/demo"
	"aob.dev/writ/internal/demo/quakes"
	"aob.dev/writ/internal/node"
)

func upCommand(std IO) *cobra.Command {
	var load func(env func(string) string) (config.Config, error)
	var sample bool
	cmd := &cobra.Command{
		Use: "up", Short: "Run everything in one process", Args: cobra.NoArgs,
		Long: "Run everything in one process: embedded NATS, SQLite, sandbox, agents, HTTP.\n" +
			"Data is under --data; the first start makes keys, genesis and an API key. To try it:\n" +
			"writ up --sample, and in another terminal: writ run \"" + demo.Question + "\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load(std.Env)
			if err != nil {
				return malformed(err)
			}
			if err := c.Validate(); err != nil {
				return usage(err)
			}
			return up(cmd.Context(), std, c, append(c.Secrets(), configFile(cmd)), sample)
		},
	}
	load = configFlags(cmd)
	cmd.Flags().BoolVar(&sample, "sample", false, "with a skill server in this process: a week of earthquakes, to try things on; nothing it does has an effect")
	return cmd
}

func up(ctx context.Context, std IO, c config.Config, secrets []string, sample bool) error {
	feed, events, err := policyFeed(std, c)
	if err != nil {
		return malformed(err)
	}
	defer func() { _ = events.Close() }() // every line was written by itself
	cfg, err := nodeConfig(c)
	if err != nil {
		return usage(err)
	}
	cfg.Secrets, cfg.Log, cfg.Now, cfg.Elapsed = secrets, logger(std, c.LogLevel), time.Now, clock.Elapsed
	cfg.Policy, cfg.PolicyExtensions, cfg.PolicyLog = feed.Main, feed.Extensions, events.log()
	if cfg.Builtin, err = sampleServer(ctx, sample); err != nil {
		return no(err)
	}
	started := time.Now()
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return no(err)
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Run(ctx, ready) }()
	select {
	case <-ready:
		announce(std, n, c, sample, time.Since(started))
		err = <-ended
	case err = <-ended:
	}
	if err = errors.Join(err, n.Close()); err != nil {
		return no(err)
	}
	return nil
}

// sampleServer serves the sample skills, if they are wanted, for as long as ctx.
func sampleServer(ctx context.Context, wanted bool) (map[string]string, error) {
	if !wanted {
		return nil, nil
	}
	url, err := quakes.Serve(ctx)
	return map[string]string{"sample": url}, err
}

// announce says on standard error where it listens, and prints the API key of a
// first start on standard output, once.
func announce(std IO, n *node.Node, c config.Config, sample bool, took time.Duration) {
	p := painter(std, std.Err)
	fmt.Fprintf(std.Err, "%s on http://%s in %.1f s; data in %s\n", p.bold("writ is up"), n.Addr(), took.Seconds(), c.Data)
	if n.APIKey != "" {
		announceKey(std, n, c)
	}
	at := ""
	if c.Data != config.Default().Data {
		at = " --data " + c.Data
	}
	switch {
	case sample:
		fmt.Fprintf(std.Err, "try: writ run%s %q\n", at, demo.Question)
	case len(c.Skills) == 0:
		fmt.Fprintln(std.Err, "no skills yet: start it with --skills URL|COMMAND, or with --sample to try it")
	default:
		fmt.Fprintf(std.Err, "try: writ run%s \"…\"\n", at)
	}
}

func announceKey(std IO, n *node.Node, c config.Config) {
	fmt.Fprintln(std.Out, n.APIKey)
	fmt.Fprintf(std.Err, "first start: above is the API key of user local, shown this once (kept in %s, mode 0600)\n", datadir.KeyFile(c.Data))
	fmt.Fprintf(std.Err, "the root key is in %s/keys/root.pem: take it offline\n", c.Data)
}
