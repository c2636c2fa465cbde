package blobs3

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"aob.dev/writ/internal/egress"
)

// Config has the address of the bucket and its credentials.
type Config struct {
	// URL is s3://bucket/prefix, with these in its query:
	//
	//	endpoint   http:// or https://host:port of the server; default that of AWS
	//	region     of the bucket; by default requested from the server
	URL string
	// Credentials is a credentials file of AWS's tools; AWS_PROFILE names the profile.
	// Empty: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
	Credentials string
	CA          []byte // CA certificates, PEM; empty: the machine's
	Spool       string // directory for uploads in progress; empty: os.TempDir()
}

const awsEndpoint = "https://s3.amazonaws.com"

// place is a parsed Config.
type place struct {
	bucket, prefix string // the prefix is empty or ends in a slash
	host           string
	secure         bool
	region         string
	ca             *x509.CertPool
}

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixName = regexp.MustCompile(`^([A-Za-z0-9_-][A-Za-z0-9._-]*/)*$`)
)

// Validate returns what is wrong with a configuration, without calling the server.
func (c Config) Validate() error {
	_, err := c.parse()
	return err
}

func (c Config) parse() (p place, err error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.Fragment != "" {
		return p, errors.New("the place of blobs is not s3://bucket/prefix?endpoint=https://host:port")
	}
	if u.User != nil {
		return p, errors.New("a URL is seen by others: credentials go into a file or the environment")
	}
	p.bucket, p.prefix = u.Host, strings.Trim(u.Path, "/")
	if p.prefix != "" {
		p.prefix += "/"
	}
	if !bucketName.MatchString(p.bucket) {
		return p, fmt.Errorf("%q is no name of a bucket", p.bucket)
	}
	if !prefixName.MatchString(p.prefix) {
		return p, fmt.Errorf("prefix %q is not of letters, digits, slashes, dots, _ and -", p.prefix)
	}
	endpoint := awsEndpoint
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return p, fmt.Errorf("%q: %w", c.URL, err)
	}
	for name, v := range query {
		switch name {
		case "endpoint":
			endpoint = v[0]
		case "region":
			p.region = v[0]
		default:
			return p, fmt.Errorf("%q is neither endpoint nor region", name)
		}
	}
	if err := p.at(endpoint); err != nil {
		return p, err
	}
	if len(c.CA) > 0 {
		p.ca = x509.NewCertPool()
		if !p.ca.AppendCertsFromPEM(c.CA) {
			return p, errors.New("the file of certificates holds no PEM certificate")
		}
	}
	return p, nil
}

func (p *place) at(endpoint string) error {
	e, err := url.Parse(endpoint)
	if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || strings.Trim(e.Path, "/") != "" || e.RawQuery != "" {
		return fmt.Errorf("endpoint: %q is not http://host:port or https://host:port", endpoint)
	}
	if e.User != nil {
		return errors.New("endpoint: credentials go into a file or the environment")
	}
	p.host, p.secure = e.Host, e.Scheme == "https"
	return nil
}

// secret returns the credentials. It is an error to have none: no request is anonymous.
func (c Config) secret() (*credentials.Credentials, error) {
	if c.Credentials != "" {
		if _, err := os.Stat(c.Credentials); err != nil {
			return nil, err
		}
		return usable(credentials.NewFileAWSCredentials(c.Credentials, ""))
	}
	return usable(credentials.NewEnvAWS())
}

func usable(c *credentials.Credentials) (*credentials.Credentials, error) {
	v, err := c.GetWithContext(&credentials.CredContext{Client: egress.Client(egress.Transport())})
	if err != nil {
		return nil, err
	}
	if v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return nil, errors.New("no credentials: give a file, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment")
	}
	return c, nil
}

// connect makes a client; nothing is sent yet.
func (p *place) connect(secret *credentials.Credentials) (*minio.Core, *http.Transport, error) {
	transport := egress.Transport(p.host)
	transport.MaxIdleConnsPerHost, transport.ResponseHeaderTimeout = 16, time.Minute
	transport.DisableCompression = true // else an object with Content-Encoding gzip would be changed on its way
	transport.TLSClientConfig.RootCAs = p.ca
	core, err := minio.NewCore(p.host, &minio.Options{
		Creds: secret, Secure: p.secure, Region: p.region, Transport: transport, MaxRetries: tries,
	})
	return core, transport, err
}

// tries of a request that failed, about a second apart.
const tries = 4
