package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

// configFlags declares the flags of the configuration. load reads it: the flags
// that were given over environment over file (docs/configuration.md).
func configFlags(cmd *cobra.Command) (load func(env func(string) string) (config.Config, error)) {
	var file string
	flags := config.Default()
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration file (default writ.yaml, if there is one)")
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
		c, err := config.Load(file, env)
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

// configFile is where the configuration may stand; its file need not be there.
func configFile(cmd *cobra.Command) string {
	if f := cmd.Flags().Lookup("config"); f != nil && f.Value.String() != "" {
		return f.Value.String()
	}
	return "writ.yaml"
}

// limits of a configuration, in which 0 is none.
func limits(c config.Config) node.Limits {
	none := func(n int) int {
		if n == 0 {
			return -1
		}
		return n
	}
	return node.Limits{
		Requests: none(c.RateLimit), Window: time.Duration(c.RateWindowMS) * time.Millisecond,
		Rates:     router.Rates{Signer: none(c.SignerRate), Tenant: none(c.TenantRate)},
		UserHolds: none(c.UserHolds), TenantHolds: none(c.TenantHolds),
		PageCache: int64(c.PageCacheMB) << 20, FreeFloor: int64(none(c.FreeDiskMB)) << 20, TenantDisk: int64(none(c.TenantDiskMB)) << 20,
	}
}

// witnessesOf a configuration.
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

// blobs is where the configuration puts blobs.
func blobs(c config.Config) (datadir.BlobsAt, error) {
	at := datadir.BlobsAt{URL: c.Blobs, Credentials: c.BlobsCredentials, CA: c.BlobsCA}
	if err := at.Validate(); err != nil {
		return at, fmt.Errorf("blobs: %w", err)
	}
	return at, nil
}

// newModel makes the model that the configuration names.
func newModel(c config.Config) (model.Model, error) {
	name, remote := strings.CutPrefix(c.Model, "openai:")
	if !remote {
		return offline.Model{}, nil
	}
	return model.NewOpenAI(model.OpenAIConfig{BaseURL: c.ModelURL, APIKey: c.ModelKey, Model: name})
}

// nodeConfig is what a node is told of a configuration; what it says of policies is
// read by policyFeed.
func nodeConfig(c config.Config) (cfg node.Config, err error) {
	cfg = node.Config{
		Dir: c.Data, Listen: c.Listen, Metrics: c.Metrics, NATS: c.NATS, NATSCert: c.NATSCert, NATSKey: c.NATSKey,
		Catalog: c.Catalog, Skills: c.Skills, Driver: c.Sandbox, Limits: limits(c),
	}
	var errs [5]error
	cfg.Model, errs[0] = newModel(c)
	cfg.Documents, errs[1] = documents(c)
	cfg.Blobs, errs[2] = blobs(c)
	cfg.Witnesses, errs[3] = witnessesOf(c)
	cfg.Embedder, errs[4] = newEmbedder(c)
	return cfg, errors.Join(errs[:]...)
}
