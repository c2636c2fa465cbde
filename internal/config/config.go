// Package config reads the configuration of a serving process: flags over
// environment over file (writ.yaml) over defaults. Unknown keys are refused.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Config of `writ up`. The zero value is not usable; begin with Default.
type Config struct {
	Data     string   `yaml:"data"`      // data directory
	Listen   string   `yaml:"listen"`    // HTTP, host:port
	Metrics  string   `yaml:"metrics"`   // host:port of a listener for /metrics; empty: none
	NATS     string   `yaml:"nats"`      // host:port of a NATS listener; empty: none
	NATSCert string   `yaml:"nats_cert"` // certificate chain of that listener, PEM; empty: no TLS
	NATSKey  string   `yaml:"nats_key"`  // its private key, PEM
	Skills   []string `yaml:"skills"`    // skill servers: URLs of streamable HTTP, or commands
	Policies string   `yaml:"policies"`  // directory, bundle file or bundle URL in place of the embedded policies

	PolicyKey        string   `yaml:"policy_key"`        // file with the public key that signs policy bundles
	PolicyToken      string   `yaml:"policy_token"`      // bearer token for the policies' bundle server; better in the environment
	PolicyExtensions []string `yaml:"policy_extensions"` // further policies that only tighten: name=directory, file or URL
	PolicyLog        string   `yaml:"policy_log"`        // file for OPA decision-log events, - for standard output; empty: none

	Documents       string `yaml:"documents"`        // URL of an OpenSearch; empty: documents are in Data
	DocumentsAuth   string `yaml:"documents_auth"`   // "Bearer …" or "ApiKey …"; better in the environment
	DocumentsCA     string `yaml:"documents_ca"`     // file with who may sign its certificate, PEM
	DocumentsPrefix string `yaml:"documents_prefix"` // in front of every index
	VectorEngine    string `yaml:"vector_engine"`    // lucene or faiss
	VectorDimension int    `yaml:"vector_dimension"` // of embeddings

	Blobs            string `yaml:"blobs"`             // dir, nats://…, tls://… or s3://…; empty: where the data directory has them
	BlobsCredentials string `yaml:"blobs_credentials"` // file with the credentials for that server
	BlobsCA          string `yaml:"blobs_ca"`          // file with who may sign its certificate, PEM

	Embedder    string `yaml:"embedder"`     // none, hashed, or openai:<model name>
	EmbedderURL string `yaml:"embedder_url"` // base URL of an OpenAI-compatible API
	EmbedderKey string `yaml:"embedder_key"` // its key; better in the environment

	Witnesses []string `yaml:"witnesses"` // who cosigns checkpoints: "<verifier key> <URL>"

	Catalog  string `yaml:"catalog"`   // directory of vendors' intent types
	Sandbox  string `yaml:"sandbox"`   // weakest sandbox driver accepted
	Model    string `yaml:"model"`     // offline, or openai:<model name>
	ModelURL string `yaml:"model_url"` // base URL of an OpenAI-compatible API
	ModelKey string `yaml:"model_key"` // its key; better in the environment
	LogLevel string `yaml:"log_level"` // debug, info, warn, error

	PageCacheMB int `yaml:"page_cache_mb"` // MiB of page caches of the embedded databases, at the most

	// Limits; 0 is none.
	RateLimit    int `yaml:"rate_limit"`     // requests of one user in a window, at the gateway
	RateWindowMS int `yaml:"rate_window_ms"` // that window
	SignerRate   int `yaml:"signer_rate"`    // orders of one signer in one tenant a second, at the router
	TenantRate   int `yaml:"tenant_rate"`    // orders of one tenant a second, at the router
	UserHolds    int `yaml:"user_holds"`     // orders of one user that wait for approval at once
	TenantHolds  int `yaml:"tenant_holds"`   // orders of one tenant that do
	FreeDiskMB   int `yaml:"free_disk_mb"`   // MiB of disk below which no new order is taken
	TenantDiskMB int `yaml:"tenant_disk_mb"` // MiB of files and artifacts that one tenant may hold
}

// Secrets are the files that hold secrets of the configuration, or may.
func (c Config) Secrets() []string {
	var list []string
	for _, path := range []string{c.NATSKey, c.BlobsCredentials} {
		if path != "" {
			list = append(list, path)
		}
	}
	return list
}

// Default values.
func Default() Config {
	return Config{
		RateLimit: 100, RateWindowMS: 900_000, SignerRate: 500, TenantRate: 1000, UserHolds: 20, TenantHolds: 200, FreeDiskMB: 256, PageCacheMB: 128, TenantDiskMB: 10_240,
		VectorEngine: "lucene", VectorDimension: 1536, Embedder: "none", EmbedderURL: "https://api.openai.com/v1",
		Data: ".writ", Listen: "127.0.0.1:8080", Model: "offline", ModelURL: "https://api.openai.com/v1", LogLevel: "info",
	}
}

// variable is one environment variable and what it sets. The first name is
// ours; the others are aliases that the requirements name.
type variable struct {
	names []string
	set   func(c *Config, value string)
}

var variables = []variable{
	{[]string{"WRIT_DATA"}, func(c *Config, v string) { c.Data = v }},
	{[]string{"PORT"}, func(c *Config, v string) { c.Listen = net.JoinHostPort(c.host(), v) }},
	{[]string{"WRIT_LISTEN"}, func(c *Config, v string) { c.Listen = v }},
	{[]string{"WRIT_METRICS"}, func(c *Config, v string) { c.Metrics = v }},
	{[]string{"WRIT_NATS"}, func(c *Config, v string) { c.NATS = v }},
	{[]string{"WRIT_NATS_CERT"}, func(c *Config, v string) { c.NATSCert = v }},
	{[]string{"WRIT_NATS_KEY"}, func(c *Config, v string) { c.NATSKey = v }},
	{[]string{"WRIT_SKILLS", "SKILL_SERVICE_URL", "cloud_skill_service", "CLOUD_SKILL_SERVICE"}, func(c *Config, v string) { c.Skills = lines(v) }},
	{[]string{"WRIT_POLICIES"}, func(c *Config, v string) { c.Policies = v }},
	{[]string{"WRIT_POLICY_KEY"}, func(c *Config, v string) { c.PolicyKey = v }},
	{[]string{"WRIT_POLICY_TOKEN"}, func(c *Config, v string) { c.PolicyToken = v }},
	{[]string{"WRIT_POLICY_EXTENSIONS"}, func(c *Config, v string) { c.PolicyExtensions = lines(v) }},
	{[]string{"WRIT_POLICY_LOG"}, func(c *Config, v string) { c.PolicyLog = v }},
	{[]string{"WRIT_DOCUMENTS"}, func(c *Config, v string) { c.Documents = v }},
	{[]string{"WRIT_DOCUMENTS_AUTH"}, func(c *Config, v string) { c.DocumentsAuth = v }},
	{[]string{"WRIT_DOCUMENTS_CA"}, func(c *Config, v string) { c.DocumentsCA = v }},
	{[]string{"WRIT_DOCUMENTS_PREFIX"}, func(c *Config, v string) { c.DocumentsPrefix = v }},
	{[]string{"WRIT_VECTOR_ENGINE"}, func(c *Config, v string) { c.VectorEngine = v }},
	{[]string{"WRIT_VECTOR_DIMENSION"}, func(c *Config, v string) { c.VectorDimension = number(v) }},
	{[]string{"WRIT_BLOBS"}, func(c *Config, v string) { c.Blobs = v }},
	{[]string{"WRIT_BLOBS_CREDENTIALS"}, func(c *Config, v string) { c.BlobsCredentials = v }},
	{[]string{"WRIT_BLOBS_CA"}, func(c *Config, v string) { c.BlobsCA = v }},
	{[]string{"WRIT_EMBEDDER"}, func(c *Config, v string) { c.Embedder = v }},
	{[]string{"WRIT_EMBEDDER_URL"}, func(c *Config, v string) { c.EmbedderURL = v }},
	{[]string{"WRIT_EMBEDDER_KEY"}, func(c *Config, v string) { c.EmbedderKey = v }},
	{[]string{"WRIT_WITNESSES"}, func(c *Config, v string) { c.Witnesses = lines(v) }},
	{[]string{"WRIT_CATALOG"}, func(c *Config, v string) { c.Catalog = v }},
	{[]string{"WRIT_SANDBOX"}, func(c *Config, v string) { c.Sandbox = v }},
	{[]string{"WRIT_MODEL"}, func(c *Config, v string) { c.Model = v }},
	{[]string{"WRIT_MODEL_URL"}, func(c *Config, v string) { c.ModelURL = v }},
	{[]string{"WRIT_MODEL_KEY"}, func(c *Config, v string) { c.ModelKey = v }},
	{[]string{"WRIT_LOG_LEVEL", "LOG_LEVEL"}, func(c *Config, v string) { c.LogLevel = v }},
	{[]string{"WRIT_RATE_LIMIT", "RATE_LIMIT_MAX_REQUESTS"}, func(c *Config, v string) { c.RateLimit = number(v) }},
	{[]string{"WRIT_RATE_WINDOW_MS", "RATE_LIMIT_WINDOW_MS"}, func(c *Config, v string) { c.RateWindowMS = number(v) }},
	{[]string{"WRIT_SIGNER_RATE"}, func(c *Config, v string) { c.SignerRate = number(v) }},
	{[]string{"WRIT_TENANT_RATE"}, func(c *Config, v string) { c.TenantRate = number(v) }},
	{[]string{"WRIT_USER_HOLDS"}, func(c *Config, v string) { c.UserHolds = number(v) }},
	{[]string{"WRIT_TENANT_HOLDS"}, func(c *Config, v string) { c.TenantHolds = number(v) }},
	{[]string{"WRIT_PAGE_CACHE_MB"}, func(c *Config, v string) { c.PageCacheMB = number(v) }},
	{[]string{"WRIT_FREE_DISK_MB"}, func(c *Config, v string) { c.FreeDiskMB = number(v) }},
	{[]string{"WRIT_TENANT_DISK_MB"}, func(c *Config, v string) { c.TenantDiskMB = number(v) }},
}

// host to listen on, as far as it is known.
func (c Config) host() string {
	if host, _, err := net.SplitHostPort(c.Listen); err == nil {
		return host
	}
	return "127.0.0.1"
}

// number of a variable; -1, which no key may be, if it is none.
func number(v string) int {
	n, err := strconv.Atoi(v)
	if err != nil {
		return -1
	}
	return n
}

// lines splits a list in one variable: one entry a line, or separated by ";".
func lines(v string) []string {
	var out []string
	for s := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == '\n' || r == ';' }) {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Load reads file and environment over the defaults. An empty path means
// writ.yaml in the working directory, which may be missing.
func Load(path string, getenv func(string) string) (Config, error) {
	c := Default()
	named := path != ""
	if !named {
		path = "writ.yaml"
	}
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the file
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
	case err != nil:
		return c, fmt.Errorf("configuration: %w", err)
	default:
		if err := decode(raw, &c); err != nil {
			return c, fmt.Errorf("configuration %s: %v", path, err)
		}
	}
	for _, v := range variables {
		for i := len(v.names) - 1; i >= 0; i-- {
			if value := getenv(v.names[i]); value != "" {
				v.set(&c, value)
			}
		}
	}
	return c, nil
}

// decode reads one YAML document, which may be empty. What stands in a second
// one would be ignored, so there must be none.
func decode(raw []byte, c *Config) error {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(c); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if err := dec.Decode(new(Config)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

// maxNumber of a key that is a number.
const maxNumber = 1_000_000_000

// Validate says what is wrong, with the key at fault.
func (c Config) Validate() error {
	if c.Data == "" {
		return errors.New("data: names no directory")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("listen: %q is not host:port", c.Listen)
	}
	if _, _, err := net.SplitHostPort(c.Metrics); c.Metrics != "" && err != nil {
		return fmt.Errorf("metrics: %q is not host:port", c.Metrics)
	}
	if _, _, err := net.SplitHostPort(c.NATS); c.NATS != "" && err != nil {
		return fmt.Errorf("nats: %q is not host:port", c.NATS)
	}
	if (c.NATSCert == "") != (c.NATSKey == "") {
		return errors.New("nats_cert: goes with nats_key")
	}
	if c.NATSCert != "" && c.NATS == "" {
		return errors.New("nats_cert: there is no listener without nats")
	}
	if name, remote := strings.CutPrefix(c.Model, "openai:"); c.Model != "offline" && (!remote || name == "") {
		return fmt.Errorf("model: %q is neither \"offline\" nor \"openai:<model name>\"", c.Model)
	}
	if name, remote := strings.CutPrefix(c.Embedder, "openai:"); c.Embedder != "none" && c.Embedder != "hashed" && (!remote || name == "") {
		return fmt.Errorf("embedder: %q is none of \"none\", \"hashed\" and \"openai:<model name>\"", c.Embedder)
	}
	for key, n := range map[string]int{
		"rate_limit": c.RateLimit, "rate_window_ms": c.RateWindowMS, "signer_rate": c.SignerRate, "tenant_rate": c.TenantRate, "user_holds": c.UserHolds, "tenant_holds": c.TenantHolds, "free_disk_mb": c.FreeDiskMB, "tenant_disk_mb": c.TenantDiskMB,
		"vector_dimension": c.VectorDimension, "page_cache_mb": c.PageCacheMB,
	} {
		if n < 0 || n > maxNumber {
			return fmt.Errorf("%s: must be a number from 0 to %d", key, maxNumber)
		}
	}
	if c.PageCacheMB < leastPageCacheMB {
		return fmt.Errorf("page_cache_mb: must be at least %d", leastPageCacheMB)
	}
	if c.RateLimit > 0 && c.RateWindowMS == 0 {
		return errors.New("rate_window_ms: a rate_limit needs a window")
	}
	for _, x := range c.PolicyExtensions {
		if name, at, ok := strings.Cut(x, "="); !ok || name == "" || at == "" {
			return fmt.Errorf("policy_extensions: %q is not name=directory, name=file or name=URL", x)
		}
	}
	switch c.LogLevel {
	case "debug", "info", "warn", "error":
		return nil
	default:
		return fmt.Errorf("log_level: %q is none of debug, info, warn, error", c.LogLevel)
	}
}

// leastPageCacheMB: with less every read goes to the disk.
const leastPageCacheMB = 8
