// Package egress is the door for all HTTP, and all mail, that goes out of this system: to skill
// servers, remote agents, models, embedders, witnesses, policies, stores and people.
//
// The address that is dialled is judged, after names were resolved and for every
// connection anew, so a name that leads elsewhere after a check gains nothing. Places that
// the operator named may be in a private network; others may not. No redirect is followed:
// neither a request nor its credentials get to a host that nobody named. Behind a proxy of
// the environment the name alone can be judged here: the proxy must refuse the rest.
package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Bounds of connections. Requests are bounded by their callers, who know the time and size of an
// answer.
const (
	dialTime  = 10 * time.Second // of all addresses of a name
	shakeTime = 10 * time.Second // of TLS
	idleTime  = 90 * time.Second
	idleConns = 32 // idle connections per host: as many as concurrent callers
	maxHeader = 1 << 20
)

// RefusedError is a place that is not dialled. Nothing was sent.
type RefusedError struct {
	Place string // requested host:port
	Addr  string // where it leads; empty: the place itself is refused
	Is    string // what it is
	Do    string // advice for the operator
}

func (r *RefusedError) Error() string {
	leads := ""
	if r.Addr != "" {
		leads = "leads to " + r.Addr + ", which "
	}
	return fmt.Sprintf("%s is refused: it %sis %s; %s", r.Place, leads, r.Is, r.Do)
}

// door limits the addresses that one transport may dial.
type door struct {
	named    []place
	proxies  []place
	proxy    func(*url.URL) (*url.URL, error)
	resolver *net.Resolver // nil: that of the machine
}

// Transport dials public addresses, and the places that the operator named: URLs,
// host:port, or a host for all its ports.
func Transport(named ...string) *http.Transport { return newDoor(named).transport() }

// Dial connects to a host:port that the operator named, for a protocol other than HTTP. No proxy is
// used.
func Dial(ctx context.Context, named string) (net.Conn, error) {
	return newDoor([]string{named}).dial(ctx, "tcp", named)
}

func newDoor(named []string) *door {
	d := &door{named: places(named), proxy: httpproxy.FromEnvironment().ProxyFunc()}
	for _, scheme := range []string{"http", "https"} {
		if u, err := d.proxy(&url.URL{Scheme: scheme, Host: "writ.example"}); err == nil && u != nil {
			d.proxies = append(d.proxies, places([]string{u.String()})...)
		}
	}
	return d
}

func (d *door) transport() *http.Transport {
	return &http.Transport{
		Proxy: d.through, DialContext: d.dial, ForceAttemptHTTP2: true, TLSClientConfig: TLS(""),
		TLSHandshakeTimeout: shakeTime, IdleConnTimeout: idleTime, MaxIdleConnsPerHost: idleConns, MaxResponseHeaderBytes: maxHeader,
	}
}

// TLS is how connections are secured; server is its name where nobody else gives it.
func TLS(server string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: server}
}

// TLSByKey is how a connection to a server with the key of the first certificate of a PEM file is
// secured. The server's name does not count.
func TLSByKey(file []byte) (*tls.Config, error) {
	block, rest := pem.Decode(file)
	for block != nil && block.Type != "CERTIFICATE" {
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("has no certificate")
	}
	want, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	c := TLS("")
	c.InsecureSkipVerify = true // VerifyConnection compares the key, which the handshake proves
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].RawSubjectPublicKeyInfo, want.RawSubjectPublicKeyInfo) {
			return errors.New("the server has another key than the certificate file says")
		}
		return nil
	}
	return c, nil
}

// Client sends requests by a transport and follows no redirect.
func Client(t http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// places parses the operator's list; invalid entries are skipped.
func places(texts []string) (out []place) {
	for _, text := range texts {
		if !strings.Contains(text, "://") {
			text = "//" + text
		}
		u, err := url.Parse(text)
		if err != nil {
			continue
		}
		if p, err := placeOf(u); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func contains(list []place, p place) bool {
	return slices.ContainsFunc(list, func(x place) bool { return x.host == p.host && (x.port == "" || x.port == p.port) })
}

// through is the proxy of a request; nil: none. A request through a proxy is judged by its name.
// Requests to the proxy itself are refused, unless it was named, too.
func (d *door) through(r *http.Request) (*url.URL, error) {
	proxy, err := d.proxy(r.URL)
	if err != nil {
		return nil, err
	}
	p, err := placeOf(r.URL)
	if err != nil {
		return nil, refusal(r.URL.Host, err.Error())
	}
	switch is := p.judge(); {
	case contains(d.named, p):
	case contains(d.proxies, p):
		return nil, refusal(p.String(), "the proxy")
	case is != "":
		return nil, refusal(p.String(), is)
	}
	return proxy, nil
}

// dial connects to a place, if the address that it leads to may be dialled.
func (d *door) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	p, err := newPlace(host, port)
	if err != nil {
		return nil, refusal(addr, err.Error())
	}
	dialer := net.Dialer{Timeout: dialTime, Resolver: d.resolver, Control: func(_, addr string, _ syscall.RawConn) error { return d.judge(p, addr) }}
	return dialer.DialContext(ctx, network, addr)
}

// judge an address that a place leads to.
func (d *door) judge(p place, addr string) error {
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		return refusal(p.String(), "no address")
	}
	is, near := judge(a.Addr())
	named := contains(d.named, p) || contains(d.proxies, p)
	_, err = netip.ParseAddr(p.host)
	literal := err == nil
	switch {
	case is == "", named && (near || literal):
		return nil
	case named:
		return &RefusedError{Place: p.String(), Addr: a.Addr().String(), Is: is, Do: "if that is meant, write the address in the place of the name"}
	case literal:
		return refusal(p.String(), is)
	}
	r := refusal(p.String(), is)
	r.Addr = a.Addr().String()
	return r
}

func refusal(place, is string) *RefusedError {
	return &RefusedError{Place: place, Is: is, Do: "if that is meant, the operator lists " + place + " in agent_hosts"}
}

// Check judges a URL before anything is sent: its form, and its host where that is an
// address or a name of a private network. Where any other name leads is judged when it is
// dialled.
func Check(text string, named ...string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return &RefusedError{Place: "the URL", Is: "no http(s)://host/path without credentials", Do: "correct it"}
	}
	p, err := placeOf(u)
	if err != nil {
		return refusal(u.Host, err.Error())
	}
	if is := p.judge(); is != "" && !contains(places(named), p) {
		return refusal(p.String(), is)
	}
	return nil
}

// RetryAfter reads how long a server asks to wait: retry-after-ms, or
// Retry-After in seconds or as a date (RFC 9110); 0 where it does not say.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.Atoi(h.Get("Retry-After-Ms")); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	after := h.Get("Retry-After")
	if s, err := strconv.Atoi(after); err == nil && s > 0 {
		return time.Duration(min(s, 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(after); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
