package opensearch

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/opensearch-project/opensearch-go/v4"

	"aob.dev/writ/internal/egress"
	"aob.dev/writ/storage"
)

// Engines of vectors.
const (
	Lucene = "lucene"
	Faiss  = "faiss" // native code, which the server must have
)

// DefaultTimeout bounds one request, retries included.
const DefaultTimeout = 10 * time.Second

// Config of a store. URL and Check are required.
type Config struct {
	URL           string // http or https, host and port; user:password@ for basic authentication
	Authorization string // in place of basic: "Bearer …" or "ApiKey …"
	CA            []byte // CA certificates, PEM; nil: the machine's
	Prefix        string // in front of every index, for a cluster that others use too
	Engine        string // of vectors: Lucene (the default) or Faiss
	Dimension     int    // of vectors; 0: storage.DefaultDimension
	Check         storage.Check
	Timeout       time.Duration // of a request; 0: DefaultTimeout
}

var prefixes = regexp.MustCompile(`^([a-z0-9][a-z0-9_-]{0,62})?$`)

// Validate returns what is wrong, with the setting at fault.
func (c Config) Validate() error {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return errors.New("documents: is no URL of a server, https://host:port")
	}
	scheme, secret, _ := strings.Cut(c.Authorization, " ")
	if c.Authorization != "" && (scheme != "Bearer" && scheme != "ApiKey" || secret == "") {
		return errors.New(`documents_auth: is neither "Bearer …" nor "ApiKey …"`)
	}
	if !prefixes.MatchString(c.Prefix) {
		return errors.New("documents_prefix: has a-z, 0-9, _ and -, and begins with a letter or a number")
	}
	switch c.Engine {
	case "", Lucene, Faiss:
	case "nmslib":
		return errors.New("vector_engine: nmslib takes no filter while it searches, so it cannot keep tenants apart, and OpenSearch 3 makes no index with it: use lucene")
	default:
		return fmt.Errorf("vector_engine: %q is neither lucene nor faiss", c.Engine)
	}
	if c.Dimension < 0 || c.Dimension > 16000 {
		return errors.New("vector_dimension: is 1 to 16000")
	}
	return nil
}

// Documents is storage.Documents in OpenSearch.
type Documents struct {
	cfg    Config
	client *opensearch.Client
	http   *http.Transport

	cache versionCache
}

var _ storage.Documents = (*Documents)(nil)

// Open prepares a client; nothing is sent yet. Migrate makes the indices.
func Open(cfg Config) (*Documents, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Engine = cmp.Or(cfg.Engine, Lucene)
	cfg.Dimension = cmp.Or(cfg.Dimension, storage.DefaultDimension)
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	d := &Documents{cfg: cfg}
	var err error
	if d.cache.versions, err = lru.New[string, *version](cacheLimit); err != nil {
		return nil, err
	}
	if d.http, err = transport(cfg); err != nil {
		return nil, err
	}
	header := http.Header{}
	if cfg.Authorization != "" {
		header.Set("Authorization", cfg.Authorization)
	}
	d.client, err = opensearch.NewClient(opensearch.Config{
		Addresses: []string{cfg.URL}, Header: header, Transport: d.http,
		DisableRetry: true, // it would repeat writes with an unknown result
		// With one address there is nothing to choose by health, and a server that is
		// back is to be used at once.
		HealthCheckMaxRetries: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("opensearch: %w", err)
	}
	return d, nil
}

// Look asks whether the server answers, and changes nothing.
func (d *Documents) Look(ctx context.Context) error {
	return d.call(ctx, request{method: http.MethodGet, path: "/", repeat: true}, nil)
}

// Close ends idle connections.
func (d *Documents) Close() error {
	err := d.client.Close()
	d.http.CloseIdleConnections()
	return err
}

// connections bounds what one process opens to the server.
const connections = 64

func transport(cfg Config) (*http.Transport, error) {
	t := egress.Transport(cfg.URL)
	t.Proxy = nil // documents go to the server that was named, nowhere else
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = connections, connections, connections
	if cfg.CA != nil {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(cfg.CA) {
			return nil, errors.New("documents_ca: holds no certificate")
		}
	}
	return t, nil
}
