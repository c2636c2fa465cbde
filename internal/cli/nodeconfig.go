package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/internal/slack"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/router/breakers"
	"aob.dev/writ/storage"
	"aob.dev/writ/upkeep"
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
		MCPRate: none(c.MCPRate), MCPTools: none(c.MCPTools), Requests: none(c.RateLimit), Window: time.Duration(c.RateWindowMS) * time.Millisecond,
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
		Dir: c.Data, Listen: c.Listen, FirstKey: c.BootstrapKey, TLSCert: c.TLSCert, TLSKey: c.TLSKey, PublicURL: c.Public(), Users: c.UserHeaders, Origins: c.CORSOrigins, Metrics: c.Metrics, NATS: c.NATS, NATSCert: c.NATSCert, NATSKey: c.NATSKey,
		Catalog: c.Catalog, Agents: cmp.Or(c.Agents, "agents"), AgentsFound: c.Agents == "", AgentVariables: c.AgentVariables, RunAgent: c.RunAgent, Routing: routingOf(c), Skills: c.Skills,
		SkillTimeout: time.Duration(c.SkillTimeoutMS) * time.Millisecond, SkillRetries: none(c.SkillRetries), StepTime: time.Duration(c.StepTimeLimitSec) * time.Second, AgentHosts: c.AgentHosts, MCPPinned: c.MCPPinned, Driver: c.Sandbox, Limits: limits(c),
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

// people are those who come with access tokens.
func people(c config.Config) (list []openid.Provider) {
	for _, p := range c.OIDC {
		one := openid.Provider{Issuer: p.Issuer, Client: openid.Client{ID: p.ClientID, Secret: p.ClientSecret, Scopes: p.Scopes}}
		if len(p.Scopes) == 0 {
			one.Client.Scopes = []string{"openid"}
		}
		for _, u := range p.Users {
			one.Users = append(one.Users, openid.User{Subject: u.Subject, Tenant: cmp.Or(u.Tenant, "default"), User: u.User, Roles: u.Roles})
		}
		for _, r := range p.Roles {
			one.Roles = append(one.Roles, openid.ClaimRole(r))
		}
		list = append(list, one)
	}
	return list
}

// lookEvery is how often files are looked at. They must be unchanged for as long before they are read: editors
// write several times for one change.
const lookEvery = time.Second

// followPeople keeps people as the configuration's files say, until ctx ends. While these have a fault,
// people stay as they were.
func followPeople(ctx context.Context, c config.Config, to *openid.Providers, log *slog.Logger) {
	var found, read string
	inForce := people(c)
	_ = clock.Every(ctx, lookEvery, func() bool { // its only error is that ctx has ended
		before := found
		if found = c.OIDCStamp(); found != before || found == read {
			return false
		}
		read = found
		now, err := c.RereadOIDC() //nolint:contextcheck // a command for a secret has a time limit of its own
		if err != nil {
			log.ErrorContext(ctx, "the configuration has a fault: oidc stays as it was", slog.String("error", err.Error()))
		} else if list := people(now); !reflect.DeepEqual(list, inForce) {
			to.Replace(list)
			inForce = list
			log.InfoContext(ctx, "oidc has changed, and is in force", slog.Any("issuers", to.Issuers()))
		}
		return false
	})
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

// models are those of a configuration, ready to be asked.
type models struct {
	strong model.Model            // with its fallback
	named  map[string]model.Model // likewise, by their names
	list   []namedModel
	prices map[string]catalog.Price // by driver:model
}

// namedModel is one model of the configuration by itself.
type namedModel struct {
	name, at string
	model    model.Model
}

// newModels makes the models of a configuration, which was read from file. sent gets the body of
// each request to a server; log and sent may be nil.
func newModels(c config.Config, file string, env func(string) string, log *slog.Logger, sent func([]byte)) (*models, error) {
	m, err := makeModels(c, env, log, sent)
	switch {
	case err == nil:
		return m, nil
	case len(c.Models) == 0: // of flags and variables
		return nil, usage(fmt.Errorf("model: %w", err))
	}
	return nil, malformed(fmt.Errorf("configuration %s: %w", file, err))
}

func makeModels(c config.Config, env func(string) string, log *slog.Logger, sent func([]byte)) (*models, error) {
	specs, err := c.ModelsOf(env)
	if err != nil {
		return nil, err
	}
	made := map[string]model.Model{}
	m := &models{named: made, prices: map[string]catalog.Price{}}
	var with func(name string) (model.Model, error)
	with = func(name string) (model.Model, error) {
		if it, there := made[name]; there {
			return it, nil
		}
		spec := specs[name]
		first, err := newModel(spec, log, sent)
		if err != nil {
			return nil, fmt.Errorf("models.%s.url: %w", name, err) // Validate and Load have checked the rest
		}
		m.list = append(m.list, namedModel{name, spec.URL, first})
		if spec.Price != nil {
			price := catalog.Price{Input: spec.Price["input"], Cached: spec.Price["input"], Output: spec.Price["output"]}
			if cached, there := spec.Price["cached"]; there {
				price.Cached = cached
			}
			m.prices[first.Name()] = price
		}
		var others []model.Model
		for _, next := range spec.Fallback {
			other, err := with(next)
			if err != nil {
				return nil, err
			}
			others = append(others, other)
		}
		made[name] = model.Fallback(first, others...)
		return made[name], nil
	}
	m.strong, err = with(config.Strong)
	for _, name := range slices.Sorted(maps.Keys(specs)) { // the others are for agents that name them
		if err == nil {
			_, err = with(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) { // they may also say the server's name
		if server := specs[name].Name; made[server] == nil && made[name] != nil {
			made[server] = made[name]
		}
	}
	return m, err
}

func newModel(spec config.Model, log *slog.Logger, sent func([]byte)) (model.Model, error) {
	if spec.Driver == config.DriverOffline {
		return offline.Model{}, nil
	}
	return model.NewOpenAI(model.OpenAIConfig{
		BaseURL: spec.URL, APIKey: spec.Key, Model: spec.Name, Timeout: time.Duration(spec.TimeoutSec) * time.Second, ContextTokens: spec.Context, Log: log, Sent: sent,
		MaxTokens: spec.MaxTokens, Effort: spec.Effort, Parallel: spec.Parallel, Images: spec.Images, Extra: spec.Extra,
	})
}

// remote reports whether requests go to a server.
func (m *models) remote() bool {
	return slices.ContainsFunc(m.list, func(one namedModel) bool { _, is := one.model.(*model.OpenAI); return is })
}

// checkTime bounds the question to one model.
const checkTime = 30 * time.Second

// check asks all models concurrently whether they answer. It returns one finding for each, in the
// order of list.
func (m *models) check(ctx context.Context) []upkeep.Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	list := make([]upkeep.Finding, len(m.list))
	var asking sync.WaitGroup
	for i, one := range m.list {
		asking.Go(func() {
			list[i] = one.named()
			if server, remote := one.model.(*model.OpenAI); remote {
				one.ask(ctx, server, &list[i])
			}
		})
	}
	asking.Wait()
	return list
}

// named names the model, without a request.
func (m namedModel) named() upkeep.Finding {
	f := upkeep.Finding{Check: "model:" + m.name, Level: upkeep.OK, Found: m.model.Name()}
	if _, remote := m.model.(*model.OpenAI); remote {
		f.Found += " at " + m.at
		return f
	}
	f.Found += ", a demonstration: it understands only the words of the skills"
	f.Do = "for a language model, set OPENAI_API_KEY or see docs/configuration.md#models"
	return f
}

// ask sends one small request with a tool, since agents cannot work without.
func (m namedModel) ask(ctx context.Context, server *model.OpenAI, f *upkeep.Finding) {
	_, err := server.Respond(ctx, model.Request{
		Agent: "doctor", Messages: []model.Message{{Role: model.RoleUser, Text: "Are you ready?"}},
		Tools: []model.Tool{{Name: "ready", Description: "Says that you are ready.", Schema: []byte(`{"type":"object","properties":{}}`)}},
	}, nil)
	if err != nil {
		f.Level, f.Do = upkeep.Warn, m.remedy(err)
		f.Found += " does not answer: " + model.Detail(err)
	}
}

// remedy is the advice for a failure.
func (m namedModel) remedy(err error) string {
	var e *model.Error
	if !errors.As(err, &e) {
		return ""
	}
	switch {
	case e.Status == 0:
		return fmt.Sprintf("look whether the server runs, and whether models.%s.url (or WRIT_MODEL_URL, OPENAI_BASE_URL) is right", m.name)
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return fmt.Sprintf("give it the right key: models.%s.key (or WRIT_MODEL_KEY, OPENAI_API_KEY)", m.name)
	case e.Status == http.StatusNotFound:
		return fmt.Sprintf("name a model that this server has: models.%s.name (or WRIT_MODEL); and look at the url, which often ends in /v1", m.name)
	case e.Status == http.StatusPaymentRequired || e.Status == http.StatusTooManyRequests:
		return fmt.Sprintf("wait, or look at the limits and the credit of the account there; models.%s.fallback can name another model", m.name)
	case e.Status >= http.StatusInternalServerError:
		return fmt.Sprintf("wait; models.%s.fallback can name another model", m.name)
	}
	return fmt.Sprintf("look at models.%s and at what its server documents; a model must be able to call tools", m.name)
}

func announceModel(std IO, f upkeep.Finding) {
	fmt.Fprintf(std.Err, "%s: %s\n", strings.Replace(f.Check, ":", " ", 1), printable(f.Found))
	if f.Do != "" {
		fmt.Fprintf(std.Err, "→ %s\n", printable(f.Do))
	}
}
