package blobnats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Config has the address of the server and the identity to connect with.
type Config struct {
	// URL is nats://host:4222 or tls://host:4222, several hosts separated by commas:
	//
	//	nats://a:4222,b:4222?bucket=writ&replicas=3
	//
	// bucket is the prefix of both buckets' names (default writ), replicas
	// the number of copies of buckets created in a cluster (default 1).
	URL         string
	Credentials string // file: .creds, or one line with user:password or a token; empty: none
	CA          []byte // CA certificates, PEM; empty: the machine's
}

// connectTime is how long a server has to answer at first.
const connectTime = 10 * time.Second

// place is a parsed Config.
type place struct {
	servers, bucket string
	replicas        int
	options         []nats.Option
}

var (
	bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	hostPort   = regexp.MustCompile(`^[^@/?#\s,]+$`)
)

// Validate returns what is wrong with a configuration, without connecting.
func (c Config) Validate() error {
	_, err := c.parse()
	return err
}

func (c Config) parse() (p place, err error) {
	address, query, _ := strings.Cut(c.URL, "?")
	scheme, hosts, ok := strings.Cut(address, "://")
	if !ok || scheme != "nats" && scheme != "tls" {
		return p, fmt.Errorf("%q is neither nats://host:port nor tls://host:port", c.URL)
	}
	var servers []string
	for host := range strings.SplitSeq(hosts, ",") {
		if strings.Contains(host, "@") {
			return p, errors.New("a URL is seen by others: credentials go into a file or the environment")
		}
		if !hostPort.MatchString(host) {
			return p, fmt.Errorf("%q names no host", c.URL)
		}
		servers = append(servers, scheme+"://"+host)
	}
	p = place{servers: strings.Join(servers, ","), bucket: "writ", replicas: 1}
	values, err := url.ParseQuery(query)
	if err != nil {
		return p, fmt.Errorf("%q: %w", c.URL, err)
	}
	for name, v := range values {
		switch name {
		case "bucket":
			p.bucket = v[0]
		case "replicas":
			p.replicas, err = strconv.Atoi(v[0])
		default:
			err = fmt.Errorf("%q: %q is neither bucket nor replicas", c.URL, name)
		}
		if err != nil {
			return p, err
		}
	}
	if !bucketName.MatchString(p.bucket) {
		return p, fmt.Errorf("bucket %q is not of 1 to 64 letters, digits, _ and -", p.bucket)
	}
	if p.replicas < 1 || p.replicas > 5 {
		return p, fmt.Errorf("replicas: %d is not from 1 to 5", p.replicas)
	}
	return p, p.secure(c, scheme)
}

func (p *place) secure(c Config, scheme string) error {
	p.options = []nats.Option{
		nats.Name("writ blobs"), nats.Timeout(connectTime), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
	}
	if c.Credentials != "" {
		raw, err := os.ReadFile(c.Credentials)
		if err != nil {
			return err
		}
		line := strings.TrimSpace(string(raw))
		user, password, two := strings.Cut(line, ":")
		switch {
		case strings.HasPrefix(line, "-----BEGIN"):
			p.options = append(p.options, nats.UserCredentials(c.Credentials))
		case line == "" || strings.ContainsAny(line, " \t\r\n"):
			return fmt.Errorf("%s: neither a .creds file nor one line with user:password or a token", c.Credentials)
		case two:
			p.options = append(p.options, nats.UserInfo(user, password))
		default:
			p.options = append(p.options, nats.Token(line))
		}
	}
	if len(c.CA) > 0 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(c.CA) {
			return errors.New("the file of certificates holds no PEM certificate")
		}
		p.options = append(p.options, nats.Secure(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}))
	} else if scheme == "tls" {
		p.options = append(p.options, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	return nil
}

// connect closes a channel when the connection is closed for good.
func (p *place) connect(closed chan<- struct{}) (*nats.Conn, error) {
	return nats.Connect(p.servers, append(p.options, nats.ClosedHandler(func(*nats.Conn) { close(closed) }))...)
}
