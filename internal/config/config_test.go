package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// load reads a file with this text under these variables.
func load(t *testing.T, text string, env map[string]string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "writ.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, func(name string) string { return env[name] })
}

// loaded is load where it must succeed.
func loaded(t *testing.T, text string, env map[string]string) Config {
	t.Helper()
	c, err := load(t, text, env)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// everyKey sets each key to something that is not its default.
const everyKey = `
data: /srv/writ
listen: 0.0.0.0:80
metrics: 127.0.0.1:9090
nats: 127.0.0.1:4222
skills: [https://skills.example/mcp, "npx -y server"]
skill_timeout_ms: 9000
skill_retries: 5
step_time_limit_sec: 1800
agent_hosts: [intern.example]
agent_variables: [CRM_URL]
policies: ./policies
agents: desk
sandbox: landlock
model: openai:large
model_url: https://models.example/v1
model_key: secret
classifier_model: small
slack_token: xoxb-secret
environment: production
bootstrap_key: first
log_level: debug
log_format: text
alert_webhook: https://pager.example/in
alert_webhook_secret: signed
alert_slack: https://chat.example/in
otlp_endpoint: https://collector.example:4318
otel_enabled: "true"
otel_collector_endpoint: http://other.example
otel_service_name: gate
trace_sample: 25
rate_limit: 7
rate_window_ms: 1000
mcp_rate: 14
mcp_tools: 15
mcp_pinned: [crm.find]
signer_rate: 8
tenant_rate: 9
user_holds: 10
tenant_holds: 11
breaker_failures: 14
breaker_reset_ms: 15
breaker_probes: 16
breaker_probe_ms: 17
breaker_sync_ms: 18
session_ttl_minutes: 12
session_max_turns: 13
session_bypass: false
clarification: "false"
page_cache_mb: 32
free_disk_mb: 0
tenant_disk_mb: 0
documents: https://search.example:9200
documents_auth: Bearer secret
documents_ca: ca.pem
documents_prefix: writ-
vector_engine: faiss
vector_dimension: 384
embedder: openai:small
embedder_url: https://vectors.example/v1
embedder_key: hidden
reranker: sorter
reranker_url: https://ranks.example/v1
reranker_key: unseen
`

var everything = Config{
	Data: "/srv/writ", Listen: "0.0.0.0:80", Metrics: "127.0.0.1:9090", NATS: "127.0.0.1:4222", Skills: []string{"https://skills.example/mcp", "npx -y server"},
	SkillTimeoutMS: 9000, SkillRetries: 5, StepTimeLimitSec: 1800, AgentHosts: []string{"intern.example"}, AgentVariables: []string{"CRM_URL"},
	Policies: "./policies", Agents: "desk", Sandbox: "landlock", Model: "openai:large", ModelURL: "https://models.example/v1", ModelKey: "secret", LogLevel: "debug", LogFormat: "text",
	AlertWebhook: "https://pager.example/in", AlertSecret: "signed", AlertSlack: "https://chat.example/in",
	OTLPEndpoint: "https://collector.example:4318", OTelEnabled: "true", OTelCollector: "http://other.example", OTelService: "gate", TraceSample: 25,
	RateLimit: 7, RateWindowMS: 1000, MCPRate: 14, MCPTools: 15, MCPPinned: []string{"crm.find"}, SignerRate: 8, TenantRate: 9, UserHolds: 10, TenantHolds: 11, BreakerFailures: 14, BreakerResetMS: 15, BreakerProbes: 16, BreakerProbeMS: 17, BreakerSyncMS: 18, SessionTTLMinutes: 12, SessionMaxTurns: 13, SessionBypass: "false", Clarification: "false", FreeDiskMB: 0, PageCacheMB: 32,
	Documents: "https://search.example:9200", DocumentsAuth: "Bearer secret", DocumentsCA: "ca.pem", DocumentsPrefix: "writ-", VectorEngine: "faiss", VectorDimension: 384,
	Embedder: "openai:small", EmbedderURL: "https://vectors.example/v1", EmbedderKey: "hidden",
	Environment: "production", BootstrapKey: "first", ClassifierModel: "small", SlackToken: "xoxb-secret",
	Reranker: "sorter", RerankerURL: "https://ranks.example/v1", RerankerKey: "unseen",
}

func TestLoadDefaults(t *testing.T) {
	t.Chdir(t.TempDir()) // no writ.yaml here
	c, err := Load("", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Default(), c, values); d != "" {
		t.Errorf("without file and environment (-default +got):\n%s", d)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
}

func TestLoadWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("writ.yaml", []byte("data: here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load("", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if c.Data != "here" {
		t.Errorf("data = %q: writ.yaml was not read", c.Data)
	}
}

func TestLoadFileOverDefaults(t *testing.T) {
	if d := cmp.Diff(everything, loaded(t, everyKey, nil), values); d != "" {
		t.Errorf("every key in the file (-want +got):\n%s", d)
	}
	want := Default()
	want.Model = "openai:small"
	if d := cmp.Diff(want, loaded(t, "model: openai:small\n", nil), values); d != "" {
		t.Errorf("one key in the file (-want +got):\n%s", d)
	}
}

func TestLoadEnvironmentOverFile(t *testing.T) {
	env := map[string]string{
		"WRIT_DATA": "/srv/writ", "WRIT_LISTEN": "0.0.0.0:80", "WRIT_METRICS": "127.0.0.1:9090", "WRIT_NATS": "127.0.0.1:4222",
		"WRIT_SKILLS": " https://skills.example/mcp ; npx -y server \n", "WRIT_SKILL_TIMEOUT_MS": "9000", "WRIT_SKILL_RETRIES": "5", "WRIT_STEP_TIME_LIMIT_SEC": "1800", "WRIT_AGENT_HOSTS": "intern.example", "WRIT_AGENT_VARIABLES": "CRM_URL", "WRIT_AGENTS": "desk", "WRIT_POLICIES": "./policies", "WRIT_SANDBOX": "landlock",
		"WRIT_MODEL": "openai:large", "WRIT_MODEL_URL": "https://models.example/v1", "WRIT_MODEL_KEY": "secret", "WRIT_LOG_LEVEL": "debug", "WRIT_LOG_FORMAT": "text",
		"WRIT_ALERT_WEBHOOK": "https://pager.example/in", "WRIT_ALERT_WEBHOOK_SECRET": "signed", "WRIT_ALERT_SLACK": "https://chat.example/in",
		"WRIT_OTLP_ENDPOINT": "https://collector.example:4318", "WRIT_OTEL_ENABLED": "true", "WRIT_OTEL_COLLECTOR_ENDPOINT": "http://other.example", "WRIT_OTEL_SERVICE_NAME": "gate", "WRIT_TRACE_SAMPLE": "25",
		"WRIT_RATE_LIMIT": "7", "WRIT_RATE_WINDOW_MS": "1000", "WRIT_MCP_RATE": "14", "WRIT_MCP_TOOLS": "15", "WRIT_MCP_PINNED": "crm.find", "WRIT_SIGNER_RATE": "8", "WRIT_TENANT_RATE": "9", "WRIT_USER_HOLDS": "10", "WRIT_TENANT_HOLDS": "11", "WRIT_BREAKER_FAILURES": "14", "WRIT_BREAKER_RESET_MS": "15", "WRIT_BREAKER_PROBES": "16", "WRIT_BREAKER_PROBE_MS": "17", "WRIT_BREAKER_SYNC_MS": "18", "WRIT_SESSION_TTL_MINUTES": "12", "WRIT_SESSION_MAX_TURNS": "13", "WRIT_SESSION_BYPASS": "false", "WRIT_CLARIFICATION": "false", "WRIT_PAGE_CACHE_MB": "32", "WRIT_FREE_DISK_MB": "0", "WRIT_TENANT_DISK_MB": "0",
		"WRIT_DOCUMENTS": "https://search.example:9200", "WRIT_DOCUMENTS_AUTH": "Bearer secret", "WRIT_DOCUMENTS_CA": "ca.pem", "WRIT_DOCUMENTS_PREFIX": "writ-",
		"WRIT_VECTOR_ENGINE": "faiss", "WRIT_VECTOR_DIMENSION": "384",
		"WRIT_ENVIRONMENT": "production", "WRIT_BOOTSTRAP_KEY": "first", "WRIT_CLASSIFIER_MODEL": "small", "WRIT_SLACK_TOKEN": "xoxb-secret",
		"WRIT_EMBEDDER": "openai:small", "WRIT_EMBEDDER_URL": "https://vectors.example/v1", "WRIT_EMBEDDER_KEY": "hidden", "WRIT_RERANKER": "sorter", "WRIT_RERANKER_URL": "https://ranks.example/v1", "WRIT_RERANKER_KEY": "unseen",
	}
	file := "data: f\nlisten: f:1\nnats: f:2\nskills: [f]\npolicies: f\nsandbox: f\nmodel: f\nmodel_url: f\nmodel_key: f\nlog_level: error\nlog_format: json\nrate_limit: 1\nrate_window_ms: 1\nmcp_rate: 1\nmcp_tools: 1\nsigner_rate: 1\ntenant_rate: 1\nuser_holds: 1\ntenant_holds: 1\npage_cache_mb: 9\nfree_disk_mb: 1\ntenant_disk_mb: 1\ndocuments: f\nvector_engine: f\nvector_dimension: 1\n"
	if d := cmp.Diff(everything, loaded(t, file, env), values); d != "" {
		t.Errorf("every variable (-want +got):\n%s", d)
	}
}

// TestLoadAliases: the aliases that the requirements name, and which value counts
// where two are set.
func TestLoadAliases(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want func(*Config)
	}{
		{"PORT", map[string]string{"PORT": "9000"}, func(c *Config) { c.Listen = "127.0.0.1:9000" }},
		{"PORT and ours", map[string]string{"PORT": "9000", "WRIT_LISTEN": "[::1]:1"}, func(c *Config) { c.Listen = "[::1]:1" }},
		{"CIRCUIT_BREAKER_*", map[string]string{
			"CIRCUIT_BREAKER_FAILURE_THRESHOLD": "7", "CIRCUIT_BREAKER_RESET_TIMEOUT_MS": "8", "CIRCUIT_BREAKER_HALF_OPEN_MAX_CALLS": "9", "CIRCUIT_BREAKER_HALF_OPEN_TIMEOUT_MS": "10",
			"ENABLE_CIRCUIT_BREAKER": "true", "CB_SYNC_INTERVAL_MS": "1", "CB_LEADER_LEASE_MS": "2",
		}, func(c *Config) {
			c.BreakerFailures, c.BreakerResetMS, c.BreakerProbes, c.BreakerProbeMS, c.BreakerSyncMS = 7, 8, 9, 10, 1
		}},
		{"ENABLE_*", map[string]string{"ENABLE_CIRCUIT_BREAKER": "false", "CIRCUIT_BREAKER_FAILURE_THRESHOLD": "7", "ENABLE_RATE_LIMITING": "0"}, func(c *Config) {
			c.BreakerFailures, c.RateLimit = 0, 0
		}},
		{"a switch that is none", map[string]string{"ENABLE_CIRCUIT_BREAKER": "off"}, func(c *Config) { c.BreakerFailures = -1 }},
		{"SESSION_*", map[string]string{"SESSION_TTL_MINUTES": "5", "SESSION_MAX_TURNS": "40"}, func(c *Config) { c.SessionTTLMinutes, c.SessionMaxTurns = 5, 40 }},
		{"ENABLE_*", map[string]string{"ENABLE_SESSION_BYPASS": "false", "ENABLE_CLARIFICATION": "0"}, func(c *Config) { c.SessionBypass, c.Clarification = "false", "0" }},
		{"MCP_*", map[string]string{"MCP_REQUEST_TIMEOUT_MS": "5000", "MCP_MAX_RETRIES": "0"}, func(c *Config) { c.SkillTimeoutMS, c.SkillRetries = 5000, 0 }},
		{"LOG_LEVEL", map[string]string{"LOG_LEVEL": "warn"}, func(c *Config) { c.LogLevel = "warn" }},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, func(c *Config) { c.OTLPEndpoint = "http://c:4318" }},
		{"P8_OTEL_*", map[string]string{"P8_OTEL_ENABLED": "true", "P8_OTEL_COLLECTOR_ENDPOINT": "http://p:4318", "P8_OTEL_SERVICE_NAME": "p"}, func(c *Config) {
			c.OTelEnabled, c.OTelCollector, c.OTelService = "true", "http://p:4318", "p"
		}},
		{"LOG_LEVEL and ours", map[string]string{"LOG_LEVEL": "warn", "WRIT_LOG_LEVEL": "debug"}, func(c *Config) { c.LogLevel = "debug" }},
		{"RATE_LIMIT_*", map[string]string{"RATE_LIMIT_MAX_REQUESTS": "5", "RATE_LIMIT_WINDOW_MS": "60000"}, func(c *Config) { c.RateLimit, c.RateWindowMS = 5, 60_000 }},
		{"SKILL_SERVICE_URL", map[string]string{"SKILL_SERVICE_URL": "https://a"}, func(c *Config) { c.Skills = []string{"https://a"} }},
		{"cloud_skill_service", map[string]string{"cloud_skill_service": "https://b"}, func(c *Config) { c.Skills = []string{"https://b"} }},
		{"CLOUD_SKILL_SERVICE", map[string]string{"CLOUD_SKILL_SERVICE": "https://b"}, func(c *Config) { c.Skills = []string{"https://b"} }},
		{
			"both skill services",
			map[string]string{"SKILL_SERVICE_URL": "https://a", "cloud_skill_service": "https://b"},
			func(c *Config) { c.Skills = []string{"https://a"} },
		},
		{
			"skill service and ours",
			map[string]string{"SKILL_SERVICE_URL": "https://a", "WRIT_SKILLS": "https://c"},
			func(c *Config) { c.Skills = []string{"https://c"} },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := Default()
			tt.want(&want)
			if d := cmp.Diff(want, loaded(t, "", tt.env), values); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestLoadPortKeepsHost: PORT is a port, and no word about who may connect.
func TestLoadPortKeepsHost(t *testing.T) {
	c := loaded(t, "listen: 0.0.0.0:80\n", map[string]string{"PORT": "9000"})
	if c.Listen != "0.0.0.0:9000" {
		t.Errorf("listen = %s", c.Listen)
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := []struct{ name, text, says string }{
		{"unknown key", "data: x\ndata_dir: x\n", "data_dir"},
		{"a key in capitals", "Data: x\n", "Data"},
		{"a key twice", "data: x\ndata: y\n", `"data" already defined`},
		{"a list that is a string", "skills: https://a\n", "https://a"},
		{"not YAML", "data: [x\n", "line 1"},
		{"a second document", "data: x\n---\nmodel: y\n", "more than one document"},
		{"an unknown key in a second document", "---\n---\ndata_dir: y\n", "more than one document"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.text, nil)
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "writ.yaml") {
				t.Errorf("error = %v, which must name the file and %q", err, tt.says)
			}
		})
	}
}

func TestLoadMissing(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "named.yaml"), func(string) string { return "" })
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "named.yaml") {
		t.Errorf("a file that was named and is not there: %v", err)
	}
}

func TestLoadEmpty(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n"} {
		if d := cmp.Diff(Default(), loaded(t, text, nil), values); d != "" {
			t.Errorf("%q (-default +got):\n%s", text, d)
		}
	}
}

func someOIDC(issuer, sub, user string) []OIDC {
	return []OIDC{{Issuer: issuer, Users: []OIDCUser{{Subject: sub, User: user, Roles: []string{"user"}}}}}
}

// TestNotices: the users of a receiver are those of one tenant; roles may be of every one. A receiver for
// each mail address has a name of its own.
func TestNotices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "writ.yaml")
	text := "public_url: https://writ.example\nnotices:\n- {kind: slack, url: 'https://chat.example/in', roles: [approver]}\n" +
		"- {kind: mail, url: 'smtps://mail.example:465', from: w@example.org, to: [a@example.org, b@example.org], users: [ben]}\n- {name: mail-2, kind: ntfy, url: 'https://ntfy.example/x'}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file, func(string) string { return "" })
	if err != nil || len(c.Notices) != 3 || c.Notices[0].Tenant != "" || c.Notices[1].Tenant != "default" {
		t.Fatalf("%+v, %v", c.Notices, err)
	}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "notices[2]: needs a name of its own") {
		t.Errorf("a name that a mail address has: %v", err)
	}
	c.Notices = c.Notices[:2]
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

// TestOIDC: oidc is of the file alone, and has no member that is not read. public_url has one spelling.
func TestOIDC(t *testing.T) {
	path := filepath.Join(t.TempDir(), "writ.yaml")
	load := func(text string) (Config, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(path, func(string) string { return "" })
	}
	c, err := load("public_url: HTTPS://Writ.Example:443/gate/\noidc:\n  - issuer: https://login.example\n    users: [{sub: s, user: ana, tenant: acme, roles: [user]}]\n")
	if err != nil || c.Validate() != nil || len(c.OIDC) != 1 || c.OIDC[0].Users[0].Tenant != "acme" || c.Public() != "https://writ.example/gate" {
		t.Errorf("%+v, %v, %v, %s", c.OIDC, err, c.Validate(), c.Public())
	}
	c, err = load("public_url: https://writ.example\noidc:\n  - issuer: https://login.example\n    users: [{sub: s, user: ana}]\n    roles: [{claim: groups, value: approvers, role: approver}]\n")
	if err != nil || c.Validate() != nil || c.OIDC[0].Roles[0] != (OIDCRole{"groups", "approvers", "approver"}) {
		t.Errorf("roles by claims: %+v, %v, %v", c.OIDC, err, c.Validate())
	}
	if c.OIDC[0].Roles[0].Value = ""; c.Validate() == nil {
		t.Error("a role for any value")
	}
	if _, err := load("oidc:\n  - issuer: https://login.example\n    users: [{email: ana@example.com, user: ana, roles: [user]}]\n"); err == nil || !strings.Contains(err.Error(), "email") {
		t.Errorf("a member that is not read: %v", err)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		key    string
		change func(*Config)
	}{
		{"data", func(c *Config) { c.Data = "" }},
		{"listen", func(c *Config) { c.Listen = "127.0.0.1:nonsense" }},
		{"metrics", func(c *Config) { c.Metrics = "127.0.0.1:65536" }},
		{"listen", func(c *Config) { c.Listen = "8080" }},
		{"listen", func(c *Config) { c.Listen = "" }},
		{"user_headers", func(c *Config) { c.UserHeaders = []string{"X-User Id"} }},
		{"cors_origins", func(c *Config) { c.CORSOrigins = []string{"*"} }},
		{"cors_origins", func(c *Config) { c.CORSOrigins = []string{"null"} }},
		{"cors_origins", func(c *Config) { c.CORSOrigins = []string{"https://chat.example", "https://chat.example/"} }},
		{"cors_origins", func(c *Config) { c.CORSOrigins = []string{"https://*.chat.example"} }},
		{"tls_cert", func(c *Config) { c.TLSCert = "tls.crt" }},
		{"public_url", func(c *Config) { c.PublicURL = "https://writ.example/a/../b" }},
		{"public_url", func(c *Config) { c.PublicURL = "https://writ.example/a b" }},
		{"oidc", func(c *Config) { c.OIDC = someOIDC("https://login.example", "s", "ana") }},
		{"oidc[0]", func(c *Config) {
			c.PublicURL, c.OIDC = "https://w.example", someOIDC("http://login.example", "s", "ana")
		}},
		{"oidc[0]", func(c *Config) {
			c.PublicURL, c.OIDC = "https://w.example", someOIDC("https://login.example", "", "ana")
		}},
		{"oidc[0]", func(c *Config) {
			c.PublicURL, c.OIDC = "https://w.example", someOIDC("https://login.example", "s", "ana@example.com")
		}},
		{"oidc[1]", func(c *Config) {
			c.PublicURL, c.OIDC = "https://w.example", append(someOIDC("https://login.example", "s", "ana"), someOIDC("https://login.example", "t", "ben")...)
		}},
		{"model", func(c *Config) { c.Model = "gpt" }},
		{"model", func(c *Config) { c.Model = "openai:" }},
		{"embedder", func(c *Config) { c.Embedder = "bert" }},
		{"embedder", func(c *Config) { c.Embedder = "openai:" }},
		{"reranker", func(c *Config) { c.Reranker = "sorter" }},
		{"log_level", func(c *Config) { c.LogLevel = "loud" }},
		{"log_format", func(c *Config) { c.LogFormat = "xml" }},
		{"nats", func(c *Config) { c.NATS = "4222" }},
		{"alert_webhook", func(c *Config) { c.AlertWebhook = "pager" }},
		{"alert_slack", func(c *Config) { c.AlertSlack = "ftp://chat.example/in" }},
		{"alert_webhook_secret", func(c *Config) { c.AlertWebhook, c.AlertSecret = "", "s" }},
		{"otlp_endpoint", func(c *Config) { c.OTLPEndpoint = "collector:4318" }},
		{"otlp_endpoint", func(c *Config) { c.OTLPEndpoint = "http://user:secret@collector:4318" }},
		{"otel_collector_endpoint", func(c *Config) { c.OTelCollector = "grpc://collector" }},
		{"otel_enabled", func(c *Config) { c.OTelEnabled = "yes" }},
		{"trace_sample", func(c *Config) { c.TraceSample = 101 }},
		{"skill_timeout_ms", func(c *Config) { c.SkillTimeoutMS = 86_400_001 }},
		{"step_time_limit_sec", func(c *Config) { c.StepTimeLimitSec = 3601 }},
		{"step_time_limit_sec", func(c *Config) { c.StepTimeLimitSec = 9 }},
		{"session_bypass", func(c *Config) { c.SessionBypass = "yes" }},
		{"clarification", func(c *Config) { c.Clarification = "" }},
		{"rate_limit", func(c *Config) { c.RateLimit = number("many") }},
		{"rate_window_ms", func(c *Config) { c.RateWindowMS = 0 }},
		{"signer_rate", func(c *Config) { c.SignerRate = -1 }},
		{"tenant_rate", func(c *Config) { c.TenantRate = maxNumber + 1 }},
		{"page_cache_mb", func(c *Config) { c.PageCacheMB = 7 }},
		{"free_disk_mb", func(c *Config) { c.FreeDiskMB = -1 }},
		{"tenant_disk_mb", func(c *Config) { c.TenantDiskMB = -1 }},
	}
	for _, tt := range tests {
		c := Default()
		tt.change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), tt.key+": ") {
			t.Errorf("%+v: error = %v, which must begin with the key %s", c, err, tt.key)
		}
	}
}

// values of a configuration, wherever they come from.
var values = cmpopts.IgnoreFields(Config{}, "Variables", "File")

// TestVariableAtFault: the error names the variable at fault, also where it is another program's.
func TestVariableAtFault(t *testing.T) {
	at := 0
	for _, s := range Settings {
		for _, name := range append(s.Variables(), s.Switch) {
			value := "-7" // what no number may be, and no switch
			err := loaded(t, "", map[string]string{name: value}).Validate()
			if err == nil || !strings.HasPrefix(err.Error(), s.Name+":") {
				continue // any text is a value, or another setting is wanted beside it
			}
			at++
			if !strings.HasSuffix(err.Error(), "(from the variable "+name+")") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
	if at < 50 {
		t.Errorf("%d variables were at fault", at)
	}
}

// TestCollector: either switch turns telemetry on, and the standard variable wins.
func TestCollector(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"neither", nil, ""},
		{"the endpoint alone says nothing", map[string]string{"P8_OTEL_COLLECTOR_ENDPOINT": "http://p:1"}, ""},
		{"enabled", map[string]string{"P8_OTEL_ENABLED": "true"}, "http://localhost:4318"},
		{"enabled, elsewhere", map[string]string{"P8_OTEL_ENABLED": "true", "P8_OTEL_COLLECTOR_ENDPOINT": "http://p:1"}, "http://p:1"},
		{"the standard one", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://o:1"}, "http://o:1"},
		{"both", map[string]string{"P8_OTEL_ENABLED": "true", "P8_OTEL_COLLECTOR_ENDPOINT": "http://p:1", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://o:1"}, "http://o:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := loaded(t, "", tt.env).Collector(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestPipeOfTheDirectory: a pipe or a directory in place of the file that nobody named is refused, and
// nobody waits for it.
func TestPipeOfTheDirectory(t *testing.T) {
	for what, put := range map[string]func() error{
		"pipe":      func() error { return syscall.Mkfifo("writ.yaml", 0o600) },
		"directory": func() error { return os.Mkdir("writ.yaml", 0o700) },
	} {
		t.Chdir(t.TempDir())
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if _, err := Load("", func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "it is no regular file") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestForeignFile: a file that nobody named is read only where nobody else can write it.
func TestForeignFile(t *testing.T) {
	t.Chdir(t.TempDir())
	none := func(string) string { return "" }
	if err := os.WriteFile("writ.yaml", []byte("listen: 127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(mode os.FileMode, uid, gid int) error {
		if err := errors.Join(os.Chown("writ.yaml", uid, gid), os.Chmod("writ.yaml", mode)); err != nil {
			t.Fatal(err)
		}
		if named, err := Load("writ.yaml", none); err != nil || named.Listen != "127.0.0.1:1" {
			t.Errorf("the file that was named: %v", err)
		}
		c, err := Load("", none)
		if err != nil && (c.Listen != Default().Listen || !strings.Contains(err.Error(), "add --config writ.yaml")) {
			t.Errorf("%q, %v", c.Listen, err)
		}
		return err
	}
	for mode, foreign := range map[os.FileMode]bool{0o600: false, 0o644: false, 0o664: false, 0o666: true, 0o602: true} {
		if err := read(mode, -1, -1); (err != nil) != foreign {
			t.Errorf("%04o: %v", mode, err)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	for _, of := range []struct {
		mode     os.FileMode
		uid, gid int
		foreign  bool
	}{{0o644, 65534, 0, true}, {0o664, 0, 65534, true}, {0o644, 0, 65534, false}} {
		if err := read(of.mode, of.uid, of.gid); (err != nil) != of.foreign {
			t.Errorf("%+v: %v", of, err)
		}
	}
}
