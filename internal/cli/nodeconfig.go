package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/internal/slack"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/router/breakers"
	"aob.dev/writ/storage"
)

// configFlags declares the flags of the configuration. load reads the configuration: the
// given flags override the environment, which overrides the file
// (docs/configuration.md). It reads only the secrets that the command needs.
func (c *command) configFlags(secrets ...string) (load func() (config.Config, error)) {
	read := configFlags(c.Command)
	return func() (config.Config, error) {
		cfg, err := read(c.std.Env)
		if err != nil {
			return cfg, malformed(err)
		}
		if err := cfg.Validate(); err != nil {
			return cfg, usage(err)
		}
		if cfg, err = cfg.Resolve(c.std.Env, secrets...); err != nil {
			return cfg, malformed(err)
		}
		return cfg, nil
	}
}

// withConfig is a command that reads the configuration.
func (c *command) withConfig(do func(cfg config.Config, args []string) (answer, error), secrets ...string) {
	load := c.configFlags(secrets...)
	c.answer = func(args []string) (answer, error) {
		cfg, err := load()
		if err != nil {
			return answer{}, err
		}
		return do(cfg, args)
	}
}

func configFlags(cmd *cobra.Command) (load func(env func(string) string) (config.Config, error)) {
	flags := config.Default()
	f := cmd.Flags()
	file := f.String("config", "", "configuration file (default writ.yaml, if it exists)")
	for _, s := range config.Settings {
		if s.Secret {
			continue
		}
		switch to := s.Bind(&flags).(type) {
		case *string:
			f.StringVar(to, s.Flag(), *to, s.Help)
		case *int:
			f.IntVar(to, s.Flag(), *to, s.Help)
		case *[]string:
			f.StringArrayVar(to, s.Flag(), nil, s.Help+" (repeatable)")
		}
	}
	return func(env func(string) string) (config.Config, error) {
		c, err := config.Load(*file, env)
		if err != nil {
			return c, err
		}
		for _, s := range config.Settings {
			if f.Changed(s.Flag()) {
				s.Copy(&c, &flags)
			}
		}
		return c, nil
	}
}

// configFile is the path of the configuration file, which need not exist.
func (c *command) configFile() string {
	return cmp.Or(c.Flags().Lookup("config").Value.String(), "writ.yaml")
}

// none is a node's value for no limit, or nothing: 0 is its default.
func none(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// limits are the limits of a configuration, in which 0 means no limit.
func limits(c config.Config) node.Limits {
	return node.Limits{
		MCPRate: none(c.MCPRate), Requests: none(c.RateLimit), Window: time.Duration(c.RateWindowMS) * time.Millisecond,
		Rates:     router.Rates{Signer: none(c.SignerRate), Tenant: none(c.TenantRate)},
		UserHolds: none(c.UserHolds), TenantHolds: none(c.TenantHolds),
		Breakers: &breakers.Terms{
			Failures: c.BreakerFailures, Reset: time.Duration(c.BreakerResetMS) * time.Millisecond, Probes: c.BreakerProbes,
			Probing: time.Duration(c.BreakerProbeMS) * time.Millisecond, Sync: time.Duration(c.BreakerSyncMS) * time.Millisecond,
		},
		PageCache: int64(c.PageCacheMB) << 20, FreeFloor: int64(none(c.FreeDiskMB)) << 20, TenantDisk: int64(none(c.TenantDiskMB)) << 20,
		SessionTTL: time.Duration(c.SessionTTLMinutes) * time.Minute, SessionTurns: c.SessionMaxTurns,
	}
}

// routingOf are the validated settings of request routing. No session is active for longer than its
// last plan is retained.
func routingOf(c config.Config) catalog.Routing {
	bypass, _ := strconv.ParseBool(c.SessionBypass)
	clarify, _ := strconv.ParseBool(c.Clarification)
	return catalog.Routing{Bypass: bypass, Clarify: clarify, TTLMinutes: min(c.SessionTTLMinutes, catalog.MaxSessionTTL)}
}

// witnessesOf reads the witnesses of a configuration.
func witnessesOf(c config.Config) ([]node.Witness, error) {
	var out []node.Witness
	for _, s := range c.Witnesses {
		w, err := node.ParseWitness(s)
		if err != nil {
			return nil, fmt.Errorf("witnesses: %w", err)
		}
		out = append(out, w)
	}
	return out, nil
}

// documents is where the configuration puts documents.
func documents(c config.Config) (datadir.DocumentsAt, error) {
	d := datadir.DocumentsAt{
		URL: c.Documents, Authorization: c.DocumentsAuth, Prefix: c.DocumentsPrefix, Engine: c.VectorEngine, Dimension: c.VectorDimension,
	}
	if c.Documents == "" {
		return d, nil
	}
	if c.DocumentsCA != "" {
		var err error
		if d.CA, err = os.ReadFile(c.DocumentsCA); err != nil {
			return d, fmt.Errorf("documents_ca: %w", err)
		}
	}
	return d, d.Validate()
}

// newEmbedder makes the embedder that the configuration names; nil: none.
func newEmbedder(c config.Config) (embed.Embedder, error) {
	dimension := cmp.Or(c.VectorDimension, storage.DefaultDimension)
	if c.Embedder == "none" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if c.Embedder == "hashed" {
		return embed.NewHashed(dimension)
	}
	return embed.NewOpenAI(embed.OpenAIConfig{
		BaseURL: c.EmbedderURL, Key: c.EmbedderKey, Model: strings.TrimPrefix(c.Embedder, "openai:"), Dimension: dimension,
	})
}

// newReranker makes the reranker that the configuration names; nil: none.
func newReranker(c config.Config) (*embed.Reranker, error) {
	if c.Reranker == "" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	return embed.NewReranker(embed.RerankConfig{BaseURL: c.RerankerURL, Key: c.RerankerKey, Model: c.Reranker})
}

// blobs is where the configuration puts blobs.
func blobs(c config.Config) (datadir.BlobsAt, error) {
	at := datadir.BlobsAt{URL: c.Blobs, Credentials: c.BlobsCredentials, CA: c.BlobsCA}
	if err := at.Validate(); err != nil {
		return at, fmt.Errorf("blobs: %w", err)
	}
	return at, nil
}

// nodeConfig makes the configuration of a node, without its model and its policies: see
// newModels and policyFeed.
func nodeConfig(c config.Config) (cfg node.Config, err error) {
	cfg = node.Config{
		Dir: c.Data, Listen: c.Listen, FirstKey: c.BootstrapKey, PublicURL: c.PublicURL, Metrics: c.Metrics, NATS: c.NATS, NATSCert: c.NATSCert, NATSKey: c.NATSKey,
		Catalog: c.Catalog, Agents: cmp.Or(c.Agents, "agents"), AgentsFound: c.Agents == "", AgentVariables: c.AgentVariables, RunAgent: c.RunAgent, Routing: routingOf(c), Skills: c.Skills,
		SkillTimeout: time.Duration(c.SkillTimeoutMS) * time.Millisecond, SkillRetries: none(c.SkillRetries), AgentHosts: c.AgentHosts, Driver: c.Sandbox, Limits: limits(c),
	}
	if c.SlackToken != "" {
		cfg.Profiles = slack.New(slack.API, c.SlackToken)
	}
	var errs [5]error
	cfg.Documents, errs[0] = documents(c)
	cfg.Blobs, errs[1] = blobs(c)
	cfg.Witnesses, errs[2] = witnessesOf(c)
	cfg.Embedder, errs[3] = newEmbedder(c)
	cfg.Reranker, errs[4] = newReranker(c)
	return cfg, errors.Join(errs[:]...)
}

// policyFeed is where policies come from.
func policyFeed(c config.Config) policies.Feed {
	feed := policies.Feed{Dir: c.Policies}
	for _, x := range c.PolicyExtensions {
		name, dir, _ := strings.Cut(x, "=") // checked by Validate
		feed.Extensions = append(feed.Extensions, policies.Extension{Name: name, Dir: dir})
	}
	return feed
}
