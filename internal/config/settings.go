package config

import (
	"strings"
)

// Setting is one row of the table of settings: flags, the file, the environment and
// the page docs/configuration.md are made of it.
type Setting struct {
	Name    string            // key of the file; the flag has - for _
	Also    []string          // further variables beside WRIT_<NAME>, which counts over them
	Default any               // nil: empty
	Bind    func(*Config) any // where the value is: *string, *int or *[]string
	Help    string            // of the flag
	More    string            // what the page adds
	Secret  bool              // no flag, because others can read a command line
	Least   int               // of a number
	Switch  string            // variable that makes a number 0 if it is false

	// Entries is where entries of the file go that are mappings; nil: none may be.
	Entries func(*Config) *[]SkillServer
}

// Flag of a setting.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Name, "_", "-") }

// Variables of a setting. The first one that is set counts.
func (s Setting) Variables() []string {
	return append([]string{"WRIT_" + strings.ToUpper(s.Name)}, s.Also...)
}

// Variables of other programs that are read in a way of their own.
const (
	port        = "PORT"                // changes the port of Listen alone
	nodeEnv     = "NODE_ENV"            // others give it values of their own, too
	firestore   = "FIRESTORE_DATABASE"  // the name of a database
	secretName  = "API_KEY_SECRET_NAME" //nolint:gosec // G101: where a secret is, and not the secret
	noFirestore = "(default)"
)

// Environments that a writ can be run in.
const (
	Development = "development"
	Production  = "production"
	Test        = "test"
)

const openAI = "https://api.openai.com/v1"

// Settings in the order of the page.
var Settings = []Setting{
	{
		Name: "data", Default: ".writ", Bind: func(c *Config) any { return &c.Data },
		Help: "data directory", More: ": journal, documents, files, keys; one process at a time",
	},
	{
		Name: "listen", Default: "127.0.0.1:8080", Also: []string{port}, Bind: func(c *Config) any { return &c.Listen },
		Help: "HTTP address, host:port", More: "; `PORT` changes the port alone",
	},
	{
		Name: "environment", Default: Development, Also: []string{nodeEnv}, Bind: func(c *Config) any { return &c.Environment },
		Help: "development, production or test",
		More: ": in production, `--debug` and `--record` are refused. Of `NODE_ENV`, any other value counts as production",
	},
	{
		Name: "bootstrap_key", Secret: true, Also: []string{secretName, "API_KEY"}, Bind: func(c *Config) any { return &c.BootstrapKey },
		Help: "API key of user local that the first start takes, in place of making one",
		More: ": from 32 characters. Only its hash is kept. Later starts say so if it is no key in force. `API_KEY_SECRET_NAME` is `file:…` or `cmd:…` alone ([below](#secrets))",
	},
	{
		Name: "public_url", Bind: func(c *Config) any { return &c.PublicURL },
		Help: "URL at which people reach writ, http(s)://host[:port]", More: "; default: `http://` and the address of `listen`. Addresses of logs begin with it ([logs.md](logs.md))",
	},
	{
		Name: "metrics", Bind: func(c *Config) any { return &c.Metrics },
		Help: "address for /metrics, as Prometheus reads it, host:port; none by default",
		More: " ([operations.md](operations.md#watch)). It asks nobody who they are, so keep it to this machine or a network of your own",
	},
	{Name: "nats", Bind: func(c *Config) any { return &c.NATS }, Help: "NATS address for external executors, host:port; none by default"},
	{Name: "nats_cert", Bind: func(c *Config) any { return &c.NATSCert }, Help: "certificate chain of the NATS listener, PEM; with it, the listener accepts only TLS"},
	{Name: "nats_key", Bind: func(c *Config) any { return &c.NATSKey }, Help: "private key of that certificate, PEM"},
	{
		Name: "bus", Bind: func(c *Config) any { return &c.Bus },
		Help: "server of the NATS cluster of writ serve: nats://host:port or tls://host:port", More: ". `writ up` has a server of its own ([deploy.md](deploy.md#a-cluster))",
	},
	{Name: "bus_ca", Bind: func(c *Config) any { return &c.BusCA }, Help: "CA certificate file for those servers, PEM; with it, connections are TLS", More: "; default: the CAs of the machine"},
	{Name: "bus_keys", Bind: func(c *Config) any { return &c.BusKeys }, Help: "directory with the keys of the process's connections, which writ accounts made"},
	{Name: "instance", Bind: func(c *Config) any { return &c.Instance }, Help: "name of the process, as writ accounts was told"},
	{
		Name: "keys", Bind: func(c *Config) any { return &c.Keys },
		Help: "directory of a role's keys, which writ cell create made", More: ": of each role of the process. Its public keys (`jwks.json`) are read again when they change",
	},
	{
		Name: "routers", Bind: func(c *Config) any { return &c.Routers },
		Help: "http(s)://host:port of a router, for a gateway of writ serve", More: ": orders and reads of them go to one of these",
	},
	{
		Name: "recorders", Bind: func(c *Config) any { return &c.Recorders },
		Help: "http(s)://host:port of a recorder, for gateways and routers of writ serve", More: ": the ledger is read, and proofs are made, at the one that records",
	},
	{
		Name: "skills", Also: []string{"SKILL_SERVICE_URL", "cloud_skill_service", "CLOUD_SKILL_SERVICE"}, Bind: func(c *Config) any { return &c.Skills },
		Entries: func(c *Config) *[]SkillServer { return &c.SkillServers },
		Help:    "skill server: URL of streamable HTTP, or a command",
		More:    ", with settings in front; an entry of the file may also be a mapping with headers and more, which flag and variable leave as it is ([skills.md](skills.md))",
	},
	{
		Name: "skill_timeout_ms", Default: 30_000, Least: 1, Also: []string{"MCP_REQUEST_TIMEOUT_MS"}, Bind: func(c *Config) any { return &c.SkillTimeoutMS },
		Help: "milliseconds that one request to a skill server or remote agent may take", More: ", where the server has no `timeout_sec`",
	},
	{
		Name: "skill_retries", Default: 3, Also: []string{"MCP_MAX_RETRIES"}, Bind: func(c *Config) any { return &c.SkillRetries },
		Help: "how often such a request is tried again; 0: never", More: ". It is, where it was certainly not taken, or where its tool may be called twice ([skills.md](skills.md#a-server-that-does-not-answer))",
	},
	{
		Name: "agent_hosts", Bind: func(c *Config) any { return &c.AgentHosts },
		Help: "host:port, or host, where remote agents may be beside the public network", More: ": an `endpoint` of a registry leads to no private address that is not listed here ([operations.md](operations.md#what-goes-out))",
	},
	{
		Name: "policies", Bind: func(c *Config) any { return &c.Policies },
		Help: "directory, signed bundle or bundle URL that replaces the embedded policies; changes are loaded",
		More: ". A bundle is a `*.tar.gz`, its URL one on an OPA bundle server; changes are taken up while running ([policies.md](policies.md))",
	},
	{
		Name: "policy_key", Bind: func(c *Config) any { return &c.PolicyKey },
		Help: "file with the public key that signs policy bundles", More: ": PEM or JWK, Ed25519; a bundle needs one",
	},
	{
		Name: "policy_token", Secret: true, Bind: func(c *Config) any { return &c.PolicyToken },
		Help: "bearer token for the bundle server of `policies`", More: ", and for extensions on the same one, over https or to this machine",
	},
	{
		Name: "policy_extensions", Bind: func(c *Config) any { return &c.PolicyExtensions },
		Help: "further policies that can only refuse more: name=PLACE", More: ", a place as in `policies`",
	},
	{
		Name: "policy_log", Bind: func(c *Config) any { return &c.PolicyLog },
		Help: "file for OPA decision-log events; - is standard output", More: ". Each event is one line at the end of the file",
	},
	{
		Name: "documents", Bind: func(c *Config) any { return &c.Documents },
		Help: "URL of an OpenSearch that keeps the documents; by default they are in the data directory",
		More: ": `https://host:9200`, with `user:password@` for basic authentication ([storage.md](storage.md))",
	},
	{Name: "documents_auth", Secret: true, Bind: func(c *Config) any { return &c.DocumentsAuth }, Help: "`Bearer …` or `ApiKey …`, instead of basic authentication"},
	{
		Name: "documents_ca", Bind: func(c *Config) any { return &c.DocumentsCA },
		Help: "CA certificate file for that server, PEM", More: "; default: the CAs of the machine",
	},
	{
		Name: "documents_prefix", Also: []string{firestore}, Bind: func(c *Config) any { return &c.DocumentsPrefix },
		Help: "prefix of the name of every index", More: ", for a cluster that others use, too. `FIRESTORE_DATABASE=sales` is the prefix `sales-`, and `(default)` is none",
	},
	{
		Name: "vector_engine", Default: "lucene", Bind: func(c *Config) any { return &c.VectorEngine },
		Help: "vector engine of OpenSearch: lucene or faiss",
		More: ". It finds neighbours with it; `faiss` needs its native code installed there, and `nmslib` is refused",
	},
	{
		Name: "vector_dimension", Default: 1536, Bind: func(c *Config) any { return &c.VectorDimension },
		Help: "dimension of the embeddings", More: "; an index with another dimension is refused",
	},
	{
		Name: "blobs", Bind: func(c *Config) any { return &c.Blobs },
		Help: "dir, or URL of an object store that keeps artifacts: nats://…, tls://… or s3://…",
		More: ". `dir` is the data directory; `nats://host:4222` or `tls://…` the object store of a NATS cluster, with `?bucket=writ&replicas=3`; " +
			"`s3://bucket/prefix?endpoint=https://host:9000` an S3-compatible server, with `&region=…`. Temporary files are there too. " +
			"Without it, where the data directory already has them; of a new one, in it ([storage.md](storage.md))",
	},
	{
		Name: "blobs_credentials", Bind: func(c *Config) any { return &c.BlobsCredentials },
		Help: "file with the credentials for that server",
		More: ". S3: as AWS's tools have it (`AWS_PROFILE` names the profile); without it `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`. " +
			"NATS: a `.creds` file, or one line with `user:password` or a token",
	},
	{
		Name: "blobs_ca", Bind: func(c *Config) any { return &c.BlobsCA },
		Help: "CA certificate file for that server, PEM", More: "; default: the CAs of the machine",
	},
	{
		Name: "embedder", Default: "none", Bind: func(c *Config) any { return &c.Embedder },
		Help: "none, hashed (offline, lexical), or openai:<model name>",
		More: ". It makes the vectors that memories are found by: with `none` they are found by their words, with `hashed` by other forms of a word and misspelled ones too, " +
			"but no synonyms; `openai:` is a service that the texts are sent to ([storage.md](storage.md))",
	},
	{
		Name: "embedder_url", Default: openAI, Bind: func(c *Config) any { return &c.EmbedderURL },
		Help: "base URL of an OpenAI-compatible API", More: " for the embedder",
	},
	{Name: "embedder_key", Secret: true, Bind: func(c *Config) any { return &c.EmbedderKey }, Help: "API key for that URL"},
	{
		Name: "reranker", Bind: func(c *Config) any { return &c.Reranker },
		Help: "model that sorts what kb.search finds; by default none does", More: ". Questions and texts are sent to it ([knowledge.md](knowledge.md))",
	},
	{
		Name: "reranker_url", Bind: func(c *Config) any { return &c.RerankerURL },
		Help: "base URL of its server", More: ", which has a `POST …/rerank` as Cohere, Jina and vLLM have it",
	},
	{Name: "reranker_key", Secret: true, Bind: func(c *Config) any { return &c.RerankerKey }, Help: "API key for that URL"},
	{
		Name: "witnesses", Bind: func(c *Config) any { return &c.Witnesses },
		Help: "witness of the log: its verifier key, a space and its URL", More: " (C2SP tlog-witness). Witnesses are third parties who cosign the log's checkpoints",
	},
	{
		Name: "catalog", Bind: func(c *Config) any { return &c.Catalog },
		Help: "directory of vendors' intent types, one file each", More: " ([extending.md](extending.md))",
	},
	{
		Name: "agents", Default: "agents", Also: []string{"AGENT_REGISTRY_DIR", "P8_SCHEMA_DIR"}, Bind: func(c *Config) any { return &c.Agents },
		Help: "directory of agents, if there is one; changes are loaded", More: ". They are pushed for all tenants ([agents.md](agents.md))",
	},
	{
		Name: "run_agent", Bind: func(c *Config) any { return &c.RunAgent },
		Help: "agent that gets the requests that name none; by default the planner plans them",
	},
	{
		Name: "sandbox", Bind: func(c *Config) any { return &c.Sandbox },
		Help: "weakest sandbox driver to accept", More: "; default: the best one that works",
	},
	{
		Name: "model", Bind: func(c *Config) any { return &c.Model }, Help: "offline, or openai:<model name>",
		More: "; default: `openai:" + DefaultModel + "` if there is an `OPENAI_API_KEY`, else `offline` ([below](#models))",
	},
	{
		Name: "model_url", Bind: func(c *Config) any { return &c.ModelURL }, Help: "base URL of an OpenAI-compatible API",
		More: " for the model; default: `OPENAI_BASE_URL`, else `" + openAI + "`",
	},
	{Name: "model_key", Secret: true, Bind: func(c *Config) any { return &c.ModelKey }, Help: "API key for that URL", More: "; default for that one alone: `OPENAI_API_KEY`"},
	{
		Name: "alert_webhook", Bind: func(c *Config) any { return &c.AlertWebhook },
		Help: "URL that gets alerts as JSON", More: " ([operations.md](operations.md#alerts))",
	},
	{Name: "alert_webhook_secret", Secret: true, Bind: func(c *Config) any { return &c.AlertSecret }, Help: "key of the signature of what that URL gets"},
	{Name: "alert_slack", Secret: true, Bind: func(c *Config) any { return &c.AlertSlack }, Help: "URL of a Slack incoming webhook that gets alerts"},
	{
		Name: "alert_email", Bind: func(c *Config) any { return &c.AlertEmail },
		Help: "who gets alerts by e-mail: smtp://[user@]host[:port]?from=ADDRESS&to=ADDRESS,ADDRESS",
	},
	{Name: "alert_email_password", Secret: true, Bind: func(c *Config) any { return &c.AlertPassword }, Help: "password of that user", More: "; it is sent over TLS alone"},
	{
		Name: "classifier_model", Also: []string{"VERTEX_AI_MODEL"}, Bind: func(c *Config) any { return &c.ClassifierModel },
		Help: "model that chooses the agent of a request, as the server of the model strong calls it; default: the model strong",
		More: ", which is asked too where this one does not answer. Without a server of models it has no effect",
	},
	{
		Name: "slack_token", Secret: true, Also: []string{"SLACK_BOT_TOKEN"}, Bind: func(c *Config) any { return &c.SlackToken },
		Help: "bot token of Slack, with the scopes users:read and users:read.email",
		More: ": where a request does not name its user, Slack is asked, by the e-mail address that the application gave, or by the id of the user if it is one of Slack's ([sessions.md](sessions.md#what-agents-are-told-of-a-turn))",
	},
	{
		Name: "otlp_endpoint", Also: []string{"OTEL_EXPORTER_OTLP_ENDPOINT"}, Bind: func(c *Config) any { return &c.OTLPEndpoint },
		Help: "base URL of an OpenTelemetry collector, which gets traces and metrics by OTLP over HTTP", More: " ([operations.md](operations.md#traces)); none by default",
	},
	{
		Name: "otel_enabled", Default: "false", Also: []string{"P8_OTEL_ENABLED"}, Bind: func(c *Config) any { return &c.OTelEnabled },
		Help: "true or false: without otlp_endpoint, the collector is that of otel_collector_endpoint",
	},
	{
		Name: "otel_collector_endpoint", Default: "http://localhost:4318", Also: []string{"P8_OTEL_COLLECTOR_ENDPOINT"}, Bind: func(c *Config) any { return &c.OTelCollector },
		Help: "base URL of the collector of otel_enabled",
	},
	{
		Name: "otel_service_name", Default: "p8-api", Also: []string{"OTEL_SERVICE_NAME", "P8_OTEL_SERVICE_NAME"}, Bind: func(c *Config) any { return &c.OTelService },
		Help: "service.name of what the collector gets",
	},
	{
		Name: "trace_sample", Default: 100, Bind: func(c *Config) any { return &c.TraceSample },
		Help: "percent of the traces that the collector gets", More: ", chosen by their ids, so that all processes send the same ones. The record has every order",
	},
	{Name: "log_level", Default: "info", Also: []string{"LOG_LEVEL"}, Bind: func(c *Config) any { return &c.LogLevel }, Help: "debug, info, warn, error"},
	{
		Name: "page_cache_mb", Default: 128, Least: 8, Bind: func(c *Config) any { return &c.PageCacheMB },
		Help: "maximum MiB of page caches of the embedded databases", More: ": half for the journal, half for documents; at least 8, since with less every read goes to the disk",
	},
	{
		Name: "rate_limit", Default: 100, Also: []string{"RATE_LIMIT_MAX_REQUESTS"}, Switch: "ENABLE_RATE_LIMITING", Bind: func(c *Config) any { return &c.RateLimit },
		Help: "requests of one user in a window, at the gateway; 0: no limit", More: ". It counts users of an API key; more get 429. `ENABLE_RATE_LIMITING=false` is 0",
	},
	{
		Name: "rate_window_ms", Default: 900_000, Also: []string{"RATE_LIMIT_WINDOW_MS"}, Bind: func(c *Config) any { return &c.RateWindowMS },
		Help: "length of that window in milliseconds", More: "; the allowance refills evenly over it",
	},
	{
		Name: "mcp_rate", Default: 60_000, Bind: func(c *Config) any { return &c.MCPRate },
		Help: "calls of tools a minute of one user of a tenant, by MCP clients; 0: no limit", More: ". The allowance of a minute may be used at once; more are answered `RATE_LIMITED`",
	},
	{
		Name: "signer_rate", Default: 500, Bind: func(c *Config) any { return &c.SignerRate },
		Help: "orders per second of one signing key in one tenant; 0: no limit", More: ". The router counts; the orders of ten seconds may come at once",
	},
	{
		Name: "tenant_rate", Default: 1000, Bind: func(c *Config) any { return &c.TenantRate },
		Help: "orders per second of one tenant, whoever signs; 0: no limit", More: ". The router counts them in the same way",
	},
	{
		Name: "user_holds", Default: 20, Bind: func(c *Config) any { return &c.UserHolds },
		Help: "orders of one user that may wait for approval at once", More: "; more get `OVERLOADED`; `0`: no limit",
	},
	{
		Name: "tenant_holds", Default: 200, Bind: func(c *Config) any { return &c.TenantHolds },
		Help: "orders of one tenant that may wait for approval at once", More: "; more get `OVERLOADED`; `0`: no limit",
	},
	{
		Name: "breaker_failures", Default: 5, Also: []string{"CIRCUIT_BREAKER_FAILURE_THRESHOLD"}, Switch: "ENABLE_CIRCUIT_BREAKER",
		Bind: func(c *Config) any { return &c.BreakerFailures },
		Help: "failures in a row after which a skill server is not called for a while; 0: no limit",
		More: "; `ENABLE_CIRCUIT_BREAKER=false` is 0 ([skills.md](skills.md#when-a-server-fails)). Breakers stand in the record and are equal on every router, so `CB_SYNC_INTERVAL_MS` and `CB_LEADER_LEASE_MS` have no effect",
	},
	{
		Name: "breaker_reset_ms", Default: 30_000, Also: []string{"CIRCUIT_BREAKER_RESET_TIMEOUT_MS"}, Bind: func(c *Config) any { return &c.BreakerResetMS },
		Help: "milliseconds for which it is not called then",
	},
	{
		Name: "breaker_probes", Default: 3, Least: 1, Also: []string{"CIRCUIT_BREAKER_HALF_OPEN_MAX_CALLS"}, Bind: func(c *Config) any { return &c.BreakerProbes },
		Help: "calls that may then show that it works again",
	},
	{
		Name: "breaker_probe_ms", Default: 60_000, Least: 1, Also: []string{"CIRCUIT_BREAKER_HALF_OPEN_TIMEOUT_MS"}, Bind: func(c *Config) any { return &c.BreakerProbeMS },
		Help: "milliseconds within which one of them has to succeed",
	},
	{
		Name: "session_ttl_minutes", Default: 30, Least: 1, Also: []string{"SESSION_TTL_MINUTES"}, Bind: func(c *Config) any { return &c.SessionTTLMinutes },
		Help: "minutes after which an unused session has ended, if it does not say",
	},
	{
		Name: "session_bypass", Default: "true", Also: []string{"ENABLE_SESSION_BYPASS"}, Bind: func(c *Config) any { return &c.SessionBypass },
		Help: "true or false: requests to the gate go to the agent of their session as long as that is active", More: " ([agents.md](agents.md#which-agent-a-request-goes-to))",
	},
	{
		Name: "clarification", Default: "true", Also: []string{"ENABLE_CLARIFICATION"}, Bind: func(c *Config) any { return &c.Clarification },
		Help: "true or false: the gate may ask the user what is meant",
	},
	{
		Name: "session_max_turns", Default: 100, Least: 2, Also: []string{"SESSION_MAX_TURNS"}, Bind: func(c *Config) any { return &c.SessionMaxTurns },
		Help: "messages that a session has at most", More: ", and never more than 1000; older ones of a conversation give way",
	},
	{
		Name: "free_disk_mb", Default: 256, Bind: func(c *Config) any { return &c.FreeDiskMB },
		Help: "MiB of free disk below which no new order is accepted; 0: no limit", More: ". Orders get `OVERLOADED`, while outcomes still fit; uploads and files stop at twice this",
	},
	{
		Name: "tenant_disk_mb", Default: 10_240, Bind: func(c *Config) any { return &c.TenantDiskMB },
		Help: "MiB of files and artifacts that one tenant may hold; 0: no limit", More: ". More gets `OVERLOADED`",
	},
}
