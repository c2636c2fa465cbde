package cli

import (
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/router"
)

// configFlags declares the flags of the configuration. load reads it: the flags
// that were given over environment over file (docs/configuration.md).
func configFlags(cmd *cobra.Command) (load func(env func(string) string) (config.Config, error)) {
	var file string
	flags := config.Default()
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration file (default writ.yaml, if there is one)")
	f.StringVar(&flags.Data, "data", flags.Data, "data directory")
	f.StringVar(&flags.Listen, "listen", flags.Listen, "HTTP address, host:port")
	f.StringVar(&flags.Metrics, "metrics", "", "address for /metrics, as Prometheus reads it, host:port; none by default")
	f.StringVar(&flags.NATS, "nats", "", "NATS address for executors of others, host:port; none by default")
	f.StringVar(&flags.NATSCert, "nats-cert", "", "certificate chain of that listener, PEM; with it, TLS alone")
	f.StringVar(&flags.NATSKey, "nats-key", "", "private key of the certificate, PEM")
	f.StringArrayVar(&flags.Witnesses, "witnesses", nil, "witness of the log: its verifier key, a space and its URL (repeatable)")
	f.StringArrayVar(&flags.Skills, "skills", nil, "skill server: URL of streamable HTTP, or a command (repeatable)")
	f.StringVar(&flags.Policies, "policies", "", "directory, signed bundle or bundle URL in place of the embedded policies; watched")
	f.StringVar(&flags.PolicyKey, "policy-key", "", "file with the public key that signs policy bundles")
	f.StringArrayVar(&flags.PolicyExtensions, "policy-extensions", nil, "further policies that only tighten: name=PLACE (repeatable)")
	f.StringVar(&flags.PolicyLog, "policy-log", "", "file for OPA decision-log events; - is standard output")
	f.StringVar(&flags.Documents, "documents", "", "URL of an OpenSearch that keeps the documents; by default they are in --data")
	f.StringVar(&flags.DocumentsCA, "documents-ca", "", "file with who may sign its certificate, PEM")
	f.StringVar(&flags.DocumentsPrefix, "documents-prefix", "", "in front of the name of every index")
	f.StringVar(&flags.VectorEngine, "vector-engine", flags.VectorEngine, "of an OpenSearch: lucene or faiss")
	f.IntVar(&flags.VectorDimension, "vector-dimension", flags.VectorDimension, "numbers in an embedding")
	f.StringVar(&flags.Blobs, "blobs", "", "dir, or URL of an object store that keeps artifacts: nats://…, tls://… or s3://…")
	f.StringVar(&flags.BlobsCredentials, "blobs-credentials", "", "file with the credentials for it")
	f.StringVar(&flags.BlobsCA, "blobs-ca", "", "file with who may sign its certificate, PEM")
	f.StringVar(&flags.Embedder, "embedder", flags.Embedder, "none, hashed (offline, lexical), or openai:<model name>")
	f.StringVar(&flags.EmbedderURL, "embedder-url", flags.EmbedderURL, "base URL of an OpenAI-compatible API")
	f.StringVar(&flags.Catalog, "catalog", "", "directory of vendors' intent types, a file each")
	f.StringVar(&flags.Sandbox, "sandbox", "", "weakest sandbox driver accepted")
	f.StringVar(&flags.Model, "model", flags.Model, "offline, or openai:<model name>")
	f.StringVar(&flags.ModelURL, "model-url", flags.ModelURL, "base URL of an OpenAI-compatible API")
	f.StringVar(&flags.LogLevel, "log-level", flags.LogLevel, "debug, info, warn, error")
	f.IntVar(&flags.RateLimit, "rate-limit", flags.RateLimit, "requests of one user in a window, at the gateway; 0: no limit")
	f.IntVar(&flags.RateWindowMS, "rate-window-ms", flags.RateWindowMS, "that window in milliseconds")
	f.IntVar(&flags.SignerRate, "signer-rate", flags.SignerRate, "orders a second of one signing key in one tenant; 0: no limit")
	f.IntVar(&flags.TenantRate, "tenant-rate", flags.TenantRate, "orders a second of one tenant; 0: no limit")
	f.IntVar(&flags.UserHolds, "user-holds", flags.UserHolds, "orders of one user that may wait for approval at once")
	f.IntVar(&flags.TenantHolds, "tenant-holds", flags.TenantHolds, "orders of one tenant that may wait for approval at once")
	f.IntVar(&flags.PageCacheMB, "page-cache-mb", flags.PageCacheMB, "MiB of page caches of the embedded databases, at the most")
	f.IntVar(&flags.FreeDiskMB, "free-disk-mb", flags.FreeDiskMB, "MiB of free disk below which no new order is taken; 0: no floor")
	f.IntVar(&flags.TenantDiskMB, "tenant-disk-mb", flags.TenantDiskMB, "MiB of files and artifacts that one tenant may hold; 0: no bound")
	return func(env func(string) string) (config.Config, error) {
		c, err := config.Load(file, env)
		if err != nil {
			return c, err
		}
		override(cmd, &c, flags)
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

// override puts the flags that were given over file and environment.
func override(cmd *cobra.Command, c *config.Config, flags config.Config) {
	for name, set := range map[string]func(){
		"data": func() { c.Data = flags.Data }, "listen": func() { c.Listen = flags.Listen }, "nats": func() { c.NATS = flags.NATS },
		"metrics": func() { c.Metrics = flags.Metrics }, "nats-cert": func() { c.NATSCert = flags.NATSCert }, "nats-key": func() { c.NATSKey = flags.NATSKey }, "catalog": func() { c.Catalog = flags.Catalog },
		"documents": func() { c.Documents = flags.Documents }, "documents-ca": func() { c.DocumentsCA = flags.DocumentsCA },
		"documents-prefix": func() { c.DocumentsPrefix = flags.DocumentsPrefix }, "vector-engine": func() { c.VectorEngine = flags.VectorEngine },
		"vector-dimension": func() { c.VectorDimension = flags.VectorDimension },
		"blobs":            func() { c.Blobs = flags.Blobs }, "blobs-credentials": func() { c.BlobsCredentials = flags.BlobsCredentials },
		"blobs-ca": func() { c.BlobsCA = flags.BlobsCA },
		"embedder": func() { c.Embedder = flags.Embedder }, "embedder-url": func() { c.EmbedderURL = flags.EmbedderURL },
		"witnesses": func() { c.Witnesses = flags.Witnesses },
		"skills":    func() { c.Skills = flags.Skills }, "policies": func() { c.Policies = flags.Policies },
		"policy-key": func() { c.PolicyKey = flags.PolicyKey }, "policy-extensions": func() { c.PolicyExtensions = flags.PolicyExtensions },
		"policy-log": func() { c.PolicyLog = flags.PolicyLog },
		"sandbox":    func() { c.Sandbox = flags.Sandbox }, "model": func() { c.Model = flags.Model },
		"model-url": func() { c.ModelURL = flags.ModelURL }, "log-level": func() { c.LogLevel = flags.LogLevel },
		"rate-limit": func() { c.RateLimit = flags.RateLimit }, "rate-window-ms": func() { c.RateWindowMS = flags.RateWindowMS },
		"signer-rate": func() { c.SignerRate = flags.SignerRate }, "tenant-rate": func() { c.TenantRate = flags.TenantRate },
		"user-holds": func() { c.UserHolds = flags.UserHolds }, "tenant-holds": func() { c.TenantHolds = flags.TenantHolds },
		"page-cache-mb": func() { c.PageCacheMB = flags.PageCacheMB },
		"free-disk-mb":  func() { c.FreeDiskMB = flags.FreeDiskMB }, "tenant-disk-mb": func() { c.TenantDiskMB = flags.TenantDiskMB },
	} {
		if cmd.Flags().Changed(name) {
			set()
		}
	}
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
