package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/demo"
	"aob.dev/writ/internal/demo/quakes"
	"aob.dev/writ/internal/node"
)

func upCommand(c *command) {
	load := c.configFlags()
	sample := c.Flags().Bool("sample", false, "also start a skill server with a week of earthquakes, to try things; it has no effects")
	c.run = func([]string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		return up(c.Context(), c.std, cfg, append(cfg.Secrets(), c.configFile()), *sample)
	}
}

func up(ctx context.Context, std IO, c config.Config, secrets []string, sample bool) error {
	feed, err := policyFeed(c)
	if err != nil {
		return malformed(err)
	}
	events, done, err := decisionLog(std, c.PolicyLog)
	if err != nil {
		return malformed(err)
	}
	defer func() { _ = done() }() // every line was written by itself
	cfg, err := nodeConfig(c)
	if err != nil {
		return usage(err)
	}
	cfg.Secrets, cfg.Log, cfg.Now, cfg.Elapsed = secrets, logger(std, c.LogLevel), time.Now, clock.Elapsed
	cfg.Policy, cfg.PolicyExtensions, cfg.PolicyLog = feed.Main, feed.Extensions, events
	if cfg.Builtin, err = sampleServer(ctx, sample); err != nil {
		return err
	}
	started := time.Now()
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Run(ctx, ready) }()
	select {
	case <-ready:
		announce(std, n, c, sample, time.Since(started))
		err = <-ended
	case err = <-ended:
	}
	return errors.Join(err, n.Close())
}

// sampleServer serves the sample skills until ctx ends, if they are wanted.
func sampleServer(ctx context.Context, wanted bool) (map[string]string, error) {
	if !wanted {
		return nil, nil
	}
	url, err := quakes.Serve(ctx)
	return map[string]string{"sample": url}, err
}

// announce prints to standard error where the node listens. After a first start it prints
// the API key to standard output, once.
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
		fmt.Fprintln(std.Err, "no skills yet: start writ with --skills URL|COMMAND, or with --sample to try it")
	default:
		fmt.Fprintf(std.Err, "try: writ run%s \"…\"\n", at)
	}
}

func announceKey(std IO, n *node.Node, c config.Config) {
	fmt.Fprintln(std.Out, n.APIKey)
	fmt.Fprintf(std.Err, "first start: above is the API key of user local, shown only this once (stored in %s, mode 0600)\n", datadir.KeyFile(c.Data))
	fmt.Fprintf(std.Err, "the root key is in %s/keys/root.pem: take it offline\n", c.Data)
}
