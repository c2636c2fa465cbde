// Package config reads the configuration of a serving process: flags over
// environment over file (writ.yaml) over defaults. Unknown keys are refused.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// Config of `writ up`, as Settings describe it. The zero value is not usable; begin
// with Default.
type Config struct {
	Variables map[string]string // of the environment that values were read from, by key of the file

	Data, Listen, Metrics   string
	Environment             string // Development, Production or Test
	BootstrapKey            string
	TLSCert, TLSKey         string
	PublicURL               string    // see Public
	OIDC                    []OIDC    // of the file alone
	Notices                 []Notices // likewise
	UserHeaders             []string
	CORSOrigins             []string
	NATS, NATSCert, NATSKey string
	Bus                     []string // of writ admin cell serve, like the fields below
	BusCA, BusKeys          string
	Instance                string
	Keys                    []string
	Routers, Recorders      []string
	Skills                  []string      // in the short form
	SkillServers            []SkillServer // beside them, of the file alone
	SkillTimeoutMS          int
	SkillRetries            int
	StepTimeLimitSec        int
	AgentHosts              []string
	MCPPinned               []string
	AgentVariables          []string

	Policies         string
	PolicyExtensions []string

	Documents, DocumentsAuth, DocumentsCA, DocumentsPrefix string
	VectorEngine                                           string
	VectorDimension                                        int

	Blobs, BlobsCredentials, BlobsCA   string
	Embedder, EmbedderURL, EmbedderKey string
	Reranker, RerankerURL, RerankerKey string

	Witnesses                 []string
	Catalog, Sandbox          string
	Agents, RunAgent          string
	Model, ModelURL, ModelKey string
	Models                    map[string]Model // of the file alone; see ModelsOf
	ClassifierModel           string
	SlackToken                string
	LogLevel, LogFormat       string
	SecretFiles               []string // that secrets were read from
	File                      string   // as given; empty: writ.yaml, if it is there

	AlertWebhook, AlertSecret, AlertSlack                 string
	AuditStream, AuditStreamSecret                        string
	OTLPEndpoint, OTelEnabled, OTelCollector, OTelService string
	TraceSample                                           int

	SessionTTLMinutes, SessionMaxTurns int
	SessionBypass, Clarification       string // true or false

	// Of the following, 0 is no limit but of PageCacheMB and RateWindowMS.
	PageCacheMB              int
	RateLimit, RateWindowMS  int
	MCPRate                  int
	MCPTools                 int
	SignerRate, TenantRate   int
	UserHolds, TenantHolds   int
	BreakerFailures          int
	BreakerResetMS           int
	BreakerProbes            int
	BreakerProbeMS           int
	BreakerSyncMS            int
	FreeDiskMB, TenantDiskMB int
}

// Secrets are the files that contain secrets of the configuration, or may, but for those of
// SkillServers.
func (c Config) Secrets() []string {
	list := slices.Clone(c.SecretFiles)
	for _, path := range []string{c.TLSKey, c.NATSKey, c.BlobsCredentials} {
		if path != "" {
			list = append(list, path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if path := c.Models[name].KeyFile; path != "" {
			list = append(list, path)
		}
	}
	return list
}

// Default values.
func Default() Config { return defaults() }

var defaults = sync.OnceValue(func() (c Config) {
	for _, s := range Settings {
		switch to := s.Bind(&c).(type) {
		case *string:
			*to, _ = s.Default.(string)
		case *int:
			*to, _ = s.Default.(int)
		}
	}
	return c
})

// Copy takes the value of a setting from another configuration.
func (s Setting) Copy(to, from *Config) {
	reflect.ValueOf(s.Bind(to)).Elem().Set(reflect.ValueOf(s.Bind(from)).Elem())
	delete(to.Variables, s.Name)
}

// read takes the value of a setting from a variable.
func (s Setting) read(c *Config, variable, value string) {
	switch variable {
	case port:
		value = net.JoinHostPort(c.host(), value)
	case nodeEnv: // an unknown environment must not open what production closes
		if value != Development && value != Test {
			value = Production
		}
	case firestore:
		if value == noFirestore {
			return
		}
		value += "-"
	}
	switch to := s.Bind(c).(type) {
	case *string:
		*to = value
	case *int:
		*to = number(value)
	case *[]string:
		*to = lines(value)
	}
}

// host to listen on, as far as it is known.
func (c Config) host() string {
	if host, _, err := net.SplitHostPort(c.Listen); err == nil {
		return host
	}
	return "127.0.0.1"
}

// number is the number in a variable; -1, which is valid for no key, if it is not a number.
func number(v string) int {
	n, err := strconv.Atoi(v)
	if err != nil {
		return -1
	}
	return n
}

// switched is a number that a variable of true and false turns off; -1, if it is neither.
func switched(v string, n int) int {
	on, err := strconv.ParseBool(v)
	switch {
	case err != nil:
		return -1
	case !on:
		return 0
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

// defaultFile is read if it is there.
const defaultFile = "writ.yaml"

// Load reads file and environment over the defaults. An empty path means writ.yaml in the working
// directory, which may be missing. The file is not read if somebody else can write it, because it
// names commands to run, files to read, and recipients of secrets.
func Load(path string, getenv func(string) string) (Config, error) {
	c := Default()
	c.Variables = map[string]string{}
	c.File = path
	named := path != ""
	if !named {
		path = defaultFile
	}
	if _, err := os.Stat(path); err == nil && !named && foreign(path) {
		return c, errors.New("configuration: writ.yaml in this directory is not read, because it is no regular file or others can write to it, and none of its commands (cmd:, skills) is run: check it, then add --config writ.yaml")
	}
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the file
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
	case err != nil:
		return c, fmt.Errorf("configuration: %w", err)
	default:
		if err := decode(raw, path, &c); err != nil {
			return c, fmt.Errorf("configuration %s: %v", path, err)
		}
	}
	for _, s := range Settings {
		for _, name := range s.Variables() {
			if value := getenv(name); value != "" {
				s.read(&c, name, value)
				c.Variables[s.Name] = name
				break
			}
		}
		if n, number := s.Bind(&c).(*int); number && s.Switch != "" {
			if value := getenv(s.Switch); value != "" {
				*n = switched(value, *n)
				c.Variables[s.Name] = s.Switch
			}
		}
	}
	return c, nil
}

// foreign reports whether users other than this one and root can write a file, or whether it is not
// a regular file: a pipe would block its reader. The user's own group may write.
func foreign(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return true
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	return !ok || !info.Mode().IsRegular() || mode&0o002 != 0 || mode&0o020 != 0 && int(of.Gid) != os.Getegid() || of.Uid != 0 && int(of.Uid) != os.Geteuid()
}

// decode reads one YAML document, which may be empty. A second one would be ignored, so there must
// be none.
func decode(raw []byte, path string, c *Config) error {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc map[string]yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	for _, s := range Settings {
		if value, there := doc[s.Name]; there {
			if s.Entries {
				c.SkillServers = skillEntries(&value, path)
			}
			if err := value.Decode(s.Bind(c)); err != nil {
				return err
			}
			delete(doc, s.Name)
		}
	}
	if models, there := doc["models"]; there {
		var err error
		if c.Models, err = decodeModels(models); err != nil {
			return err
		}
		if x := cmp.Or(c.Model, c.ModelURL, c.ModelKey); x != "" && len(c.Models) > 0 {
			return errors.New("models.strong says what model, model_url and model_key say: remove those from the file")
		}
		delete(doc, "models")
	}
	if people, there := doc["oidc"]; there {
		var err error
		if c.OIDC, err = decodeList[OIDC](people); err != nil {
			return fmt.Errorf("oidc: %w", err)
		}
		delete(doc, "oidc")
	}
	if people, there := doc[NoticesKey]; there {
		var err error
		if c.Notices, err = decodeList[Notices](people); err != nil {
			return fmt.Errorf("notices: %w", err)
		}
		for i, n := range c.Notices {
			c.Notices[i].Name = cmp.Or(n.Name, n.Kind)
			if len(n.Users) > 0 { // a name means somebody of one tenant
				c.Notices[i].Tenant = cmp.Or(n.Tenant, "default")
			}
		}
		delete(doc, NoticesKey)
	}
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		return fmt.Errorf("line %d: field %s not found", doc[name].Line, name)
	}
	return nil
}

// maxNumber of a key that is a number.
const maxNumber = 1_000_000_000

// Public is public_url in one spelling: lower case, without its scheme's port, and without a slash at
// its end.
func (c Config) Public() string {
	u, ok := httpURL(c.PublicURL)
	if !ok {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(u.Host), map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	return u.Scheme + "://" + host + strings.TrimSuffix(u.EscapedPath(), "/")
}

// Collector is the base URL of the collector that gets telemetry; empty: there is none.
func (c Config) Collector() string {
	if on, _ := strconv.ParseBool(c.OTelEnabled); c.OTLPEndpoint == "" && on {
		return c.OTelCollector
	}
	return c.OTLPEndpoint
}

// Validate returns the first fault, with its key and the variable that it was read from.
func (c Config) Validate() error {
	err := c.validate()
	if err == nil {
		return nil
	}
	key, _, _ := strings.Cut(err.Error(), ":")
	if from := c.Variables[key]; from != "" {
		return fmt.Errorf("%w (from the variable %s)", err, from)
	}
	return err
}

func (c Config) validate() error {
	for _, x := range [][2]string{{"listen", c.Listen}, {"metrics", c.Metrics}, {"nats", c.NATS}} {
		_, port, err := net.SplitHostPort(x[1])
		if _, bad := strconv.ParseUint(port, 10, 16); (x[1] != "" || x[0] == "listen") && (err != nil || bad != nil) {
			return fmt.Errorf("%s: %q is not host:port, with a port from 0 to 65535", x[0], x[1])
		}
	}
	for _, x := range [][2]string{{"alert_webhook", c.AlertWebhook}, {"alert_slack", c.AlertSlack}, {"audit_stream", c.AuditStream}} {
		if _, ok := httpURL(x[1]); x[1] != "" && !ok {
			return fmt.Errorf("%s: is not http(s)://host[:port]/path", x[0]) // the value is a secret
		}
	}
	for _, x := range [][2]string{{"otlp_endpoint", c.OTLPEndpoint}, {"otel_collector_endpoint", c.OTelCollector}} {
		if u, ok := httpURL(x[1]); x[1] != "" && (!ok || u.User != nil) {
			return fmt.Errorf("%s: %q is not http(s)://host[:port]; credentials go into OTEL_EXPORTER_OTLP_HEADERS", x[0], x[1])
		}
	}
	for _, s := range Settings {
		n, number := s.Bind(&c).(*int)
		if number && (*n < 0 || *n > maxNumber) {
			return fmt.Errorf("%s: must be a number from 0 to %d", s.Name, maxNumber)
		}
		if number && *n < s.Least {
			return fmt.Errorf("%s: must be at least %d", s.Name, s.Least)
		}
	}
	for _, x := range [][2]string{{"session_bypass", c.SessionBypass}, {"clarification", c.Clarification}, {"otel_enabled", c.OTelEnabled}} {
		if _, err := strconv.ParseBool(x[1]); err != nil {
			return fmt.Errorf("%s: %q is neither true nor false", x[0], x[1])
		}
	}
	for _, x := range c.PolicyExtensions {
		if name, at, ok := strings.Cut(x, "="); !ok || name == "" || at == "" {
			return fmt.Errorf("policy_extensions: %q is not name=directory", x)
		}
	}
	for _, x := range c.UserHeaders {
		if !headerName.MatchString(x) {
			return fmt.Errorf("user_headers: %q is not the name of a header", x)
		}
	}
	for _, x := range c.CORSOrigins {
		if u, ok := httpURL(x); !ok || strings.Contains(x, "*") || x != u.Scheme+"://"+strings.ToLower(u.Host) {
			return fmt.Errorf("cors_origins: %q is not http(s)://host[:port]", x)
		}
	}
	public, ofHTTP := httpURL(c.PublicURL)
	for _, x := range []struct {
		wrong bool
		fault string
	}{
		{c.Data == "", "data: names no directory"},
		{!slices.Contains([]string{Development, Production, Test}, c.Environment), fmt.Sprintf("environment: %q is none of %s, %s and %s", c.Environment, Development, Production, Test)},
		{!slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel), fmt.Sprintf("log_level: %q is none of debug, info, warn, error", c.LogLevel)},
		{!slices.Contains([]string{"auto", "json", "text"}, c.LogFormat), fmt.Sprintf("log_format: %q is none of auto, json, text", c.LogFormat)},
		{c.PublicURL != "" && (!ofHTTP || public.User != nil || public.RawQuery != "" || public.Fragment != "" || !publicPath.MatchString(public.EscapedPath())), fmt.Sprintf("public_url: %q is not http(s)://host[:port][/path], with a path of letters, digits, _, ., - and ~", c.PublicURL)},
		{c.AlertSecret != "" && c.AlertWebhook == "", "alert_webhook_secret: there is nobody who gets alerts with it"},
		{c.AuditStreamSecret != "" && c.AuditStream == "", "audit_stream_secret: there is nobody who gets the record with it"},
		{c.TraceSample > 100, "trace_sample: is a percentage: 0 to 100"},
		{c.SkillTimeoutMS > 86_400_000, "skill_timeout_ms: must be at most 86400000, a day"},
		{c.StepTimeLimitSec > 3600, "step_time_limit_sec: must be at most 3600"},
		{(c.TLSCert == "") != (c.TLSKey == ""), "tls_cert: goes with tls_key"},
		{(c.NATSCert == "") != (c.NATSKey == ""), "nats_cert: goes with nats_key"},
		{c.NATSCert != "" && c.NATS == "", "nats_cert: there is no listener without nats"},
		{c.Model != "" && c.Model != "offline" && !ofOpenAI(c.Model), fmt.Sprintf("model: %q is neither \"offline\" nor \"openai:<model name>\"", c.Model)},
		{c.Embedder != "none" && c.Embedder != "hashed" && !ofOpenAI(c.Embedder), fmt.Sprintf("embedder: %q is none of \"none\", \"hashed\" and \"openai:<model name>\"", c.Embedder)},
		{(c.Reranker == "") != (c.RerankerURL == ""), "reranker: goes with reranker_url"},
		{c.RateLimit > 0 && c.RateWindowMS == 0, "rate_window_ms: a rate_limit needs a window"},
	} {
		if x.wrong {
			return errors.New(x.fault)
		}
	}
	return cmp.Or(c.checkOIDC(), c.checkNotices())
}

// publicPath is a path that needs no encoding and has no part like "..".
var publicPath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)*/?$`)

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// httpURL reads a text, and reports whether it is http(s)://host.
func httpURL(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	return u, err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// ofOpenAI reports whether a text is openai:<model name>.
func ofOpenAI(text string) bool {
	name, remote := strings.CutPrefix(text, "openai:")
	return remote && name != ""
}
