package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/demo"
	"aob.dev/writ/internal/demo/quakes"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/internal/telemetry"
)

func upCommand(c *command) {
	load := c.configFlags(config.Every)
	var x extras
	c.Flags().BoolVar(&x.sample, "sample", false, "also start a skill server with a week of earthquakes, to try things; it has no effects")
	c.Flags().BoolVar(&x.debug, "debug", false, "for development: print each request to a model's server to standard error, as the JSON that is sent")
	c.run = func([]string) error {
		cfg, err := load()
		if err != nil {
			return err
		}
		if cfg.Environment == config.Production && x.debug {
			return usage(errors.New("--debug shows what users ask, so it is refused in production: leave it out, or set WRIT_ENVIRONMENT=development (it may come from NODE_ENV)"))
		}
		if len(cfg.Bus) > 0 {
			return usage(errors.New("bus: writ up has a server of its own: remove the setting, or run the roles with writ admin cell serve"))
		}
		return up(c.Context(), c.std, cfg, c.configFile(), x)
	}
}

// extras are the flags of writ up that are no settings.
type extras struct{ sample, debug bool }

// processConfig is the configuration of a process, and its models.
func processConfig(ctx context.Context, std IO, c config.Config, file string, x extras) (cfg node.Config, m *models, err error) {
	if m, err = x.models(std, c, file); err != nil {
		return cfg, nil, err
	}
	if cfg, err = nodeConfig(c); err != nil {
		return cfg, nil, usage(err)
	}
	cfg.Models, cfg.Policy = m.named, policyFeed(c)
	cfg.Model, cfg.Prices, cfg.Secrets, cfg.Log, cfg.Now, cfg.Elapsed = m.strong, m.prices, append(c.Secrets(), file), logger(std, c.LogLevel, c.LogFormat), time.Now, clock.Elapsed
	cfg.Alerts, cfg.Notices, cfg.AuditStream, cfg.People = alertReceivers(c), noticeReceivers(c), auditReceiver(c), openid.New(people(c), time.Now, cfg.Log)
	servers, secrets, err := skillServers(c, std.Env)
	if err != nil {
		return cfg, nil, malformed(err)
	}
	cfg.SkillServers, cfg.Secrets = servers, append(cfg.Secrets, secrets...)
	if cfg.Builtin, err = sampleServer(ctx, x.sample); err != nil {
		return cfg, nil, err
	}
	return cfg, m, nil
}

func up(ctx context.Context, std IO, c config.Config, file string, x extras) error {
	return runNode(ctx, std, c, file, x, nil, func(std IO, n *node.Node, m *models, took time.Duration) {
		announce(std, n, c, took)
		for _, one := range m.list {
			announceModel(std, one.named())
		}
		announceNext(std, c, x.sample)
	})
}

// runNode runs a node until ctx ends, and prints when it serves.
func runNode(ctx context.Context, std IO, c config.Config, file string, x extras, cluster *node.Cluster, serves func(std IO, n *node.Node, m *models, took time.Duration)) error {
	std, dropped, flush := served(std, c)
	defer flush()
	cfg, models, err := processConfig(ctx, std, c, file, x)
	if err != nil {
		return err
	}
	cfg.Cluster, cfg.Dropped = cluster, dropped
	started := time.Now()
	n, err := node.Open(ctx, cfg)
	if err != nil {
		return err
	}
	sent, err := sendTelemetry(ctx, c, n, cfg.Log)
	if err != nil {
		return errors.Join(err, n.Close())
	}
	defer sent()
	var following sync.WaitGroup
	defer following.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	following.Go(func() { followPeople(ctx, c, cfg.People, cfg.Log) })
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Run(ctx, ready) }()
	select {
	case <-ready:
		serves(std, n, models, time.Since(started))
		err = <-ended
	case err = <-ended:
	}
	return errors.Join(err, n.Close())
}

// sendTelemetry exports telemetry to the collector of the configuration, if any. flush sends the
// rest.
func sendTelemetry(ctx context.Context, c config.Config, n *node.Node, log *slog.Logger) (flush func(), err error) {
	at := c.Collector()
	if at == "" {
		return func() {}, nil
	}
	stop, err := telemetry.Export(ctx, telemetry.OTLP{Endpoint: at, Service: c.OTelService, Sample: float64(c.TraceSample) / 100}, n.Figures(), log)
	if err != nil {
		return nil, malformed(err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
		defer cancel()
		if err := stop(ctx); err != nil {
			log.WarnContext(ctx, "the last telemetry is not sent", slog.String("error", err.Error()))
		}
	}, nil
}

// flushTime bounds how long a collector that is down delays the end of writ.
const flushTime = 2 * time.Second

// models are those of the configuration, watched as the flags say.
func (x extras) models(std IO, c config.Config, file string) (*models, error) {
	var sent func([]byte)
	if x.debug {
		var writing sync.Mutex // whole lines
		sent = func(body []byte) {
			writing.Lock()
			defer writing.Unlock()
			var line bytes.Buffer
			if json.Compact(&line, body) == nil {
				fmt.Fprintf(std.Err, "%s\n", &line)
			}
		}
	}
	m, err := newModels(c, file, std.Env, logger(std, c.LogLevel, c.LogFormat), sent)
	if err != nil {
		return nil, err
	}
	if x.debug && !m.remote() {
		return nil, usage(errors.New("--debug: no request goes to a model's server: name one with models, or with --model openai:NAME"))
	}
	return m, nil
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
func announce(std IO, n *node.Node, c config.Config, took time.Duration) {
	p := painter(std, std.Err)
	fmt.Fprintf(std.Err, "%s on %s in %.1f s; data in %s\n", p.bold("writ is up"), n.URL(), took.Seconds(), c.Data)
	for _, s := range n.SkillServers() {
		fmt.Fprintf(std.Err, "skills of %s: %s\n", printable(s.Title), printable(skillLine(s)))
	}
	for _, b := range n.Breakers() {
		fmt.Fprintf(std.Err, "tenant %s: skill server %s\n", printable(b.Tenant), printable(b.String()))
	}
	fmt.Fprintln(std.Err, limitsLine(c))
	if line := n.AgentsLine(); line != "" {
		fmt.Fprintln(std.Err, printable(line))
	}
	if user := n.Alone(); user != "" {
		fmt.Fprintf(std.Err, "%s is alone with this writ, and may approve what they asked for: with writ approvals, in writ chat, or in the console (log in with the key in %s). The first other approver ends this\n", user, datadir.PersonKeyFile(c.Data))
	}
	switch {
	case n.APIKey != "":
		announceKey(std, n, c)
	case n.KeyInUse:
		fmt.Fprintln(std.Err, "first start: the API key of user local is the one that you gave; writ keeps its hash alone")
		announceRoot(std, c)
		if n.KeyWeak {
			fmt.Fprintln(std.Err, "warning: that API key can be guessed, and is accepted because only this machine reaches writ; with another --listen, writ does not start with it")
		}
	case n.KeyUnknown:
		fmt.Fprintln(std.Err, "the API key of bootstrap_key (API_KEY, API_KEY_SECRET_NAME) is not in force here: use the one of the first start, or make one with writ apikey create; unset it to avoid this line")
	}
}

// limitsLine describes the limits of one user.
func limitsLine(c config.Config) string {
	line := "limits of each user: none of requests"
	if c.RateLimit > 0 {
		line = fmt.Sprintf("limits of each user: %d requests in %v (rate_limit, rate_window_ms), %d reads a minute",
			c.RateLimit, time.Duration(c.RateWindowMS)*time.Millisecond, node.ReadRate)
	}
	if c.MCPRate > 0 {
		line += fmt.Sprintf("; %d calls of tools a minute by MCP clients (mcp_rate)", c.MCPRate)
	}
	return line
}

// announceNext prints the possible next steps.
func announceNext(std IO, c config.Config, sample bool) {
	at := ""
	if c.Data != config.Default().Data {
		at = " --data " + c.Data
	}
	switch {
	case sample:
		fmt.Fprintf(std.Err, "try: writ run%s %q\n", at, demo.Question)
	case len(c.Skills)+len(c.SkillServers) == 0:
		fmt.Fprintln(std.Err, "no skills yet: start writ with --skills URL|COMMAND, or with --sample to try it")
	default:
		fmt.Fprintf(std.Err, "try: writ run%s \"…\"\n", at)
	}
}

func announceKey(std IO, n *node.Node, c config.Config) {
	fmt.Fprintln(std.Out, n.APIKey)
	fmt.Fprintf(std.Err, "first start: above is the API key of user local, shown only this once (stored in %s, mode 0600)\n", datadir.KeyFile(c.Data))
	announceRoot(std, c)
}

func announceRoot(std IO, c config.Config) {
	fmt.Fprintf(std.Err, "the root key is in %s/keys/root.pem: take it offline\n", c.Data)
}

func demoCommand(c *command) {
	var o demo.Options
	c.run = func([]string) error {
		level := "error"
		if c.asJSON {
			level = "warn"
		}
		o.Log = logger(c.std, level, "auto")
		p := painter(c.std, c.std.Err)
		if !c.asJSON {
			fmt.Fprintln(c.std.Err, p.bold(demo.Question))
			o.Progress = func(s bus.StatusData) { fmt.Fprintln(c.std.Err, p.dim(progress(s))) }
		}
		res, err := demo.Run(c.Context(), o)
		if err != nil {
			return err
		}
		if c.asJSON {
			return printJSON(c.std.Out, res)
		}
		p = painter(c.std, c.std.Out)
		_, err = io.WriteString(c.std.Out, render("demo.table", struct {
			demo.Result
			Bold, Dim, Green func(string) string
		}{res, p.bold, p.dim, p.green}))
		return err
	}
	c.Flags().StringVar(&o.Data, "data", "", "keep the data in this directory (default: a temporary one)")
	c.jsonFlag()
}
