package egress_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/testing/egresstest"
)

// door of a test.
func door(quiet bool) egress.Server {
	return egress.Server{Name: "the store at x", Unaffected: "nothing was lost", Address: "store (--store)", Secret: "store_key", CA: "store_ca", Try: "writ doctor", Quiet: quiet}
}

// TestFault: an error of a named server says what happened, what stands and what to do, for
// every way in which a server fails, and is still the same error.
func TestFault(t *testing.T) {
	for name, b := range egresstest.Servers(t) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := egress.Client(egress.Transport(b.URL)).Do(req)
		if err == nil {
			err = egress.Status(resp.StatusCode)
			_ = resp.Body.Close()
		}
		for _, quiet := range []bool{false, true} {
			got := door(quiet).Fault(err)
			t.Run(name, func(t *testing.T) { b.Check(t, got, "nothing was lost") })
			if !errors.Is(got, err) || !strings.HasPrefix(got.Error(), "the store at x: ") || !strings.Contains(got.Error(), ", then: writ doctor") {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

// TestHungUp: a peer that hangs up is told in the same words wherever net/http notices it. Here
// it does between the connection and the request.
func TestHungUp(t *testing.T) {
	b := egresstest.Servers(t)["hangs up"]
	noticed := make(chan struct{})
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return &closing{Conn: c, closed: sync.OnceFunc(func() { close(noticed) })}, err
	}}
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { <-noticed }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err == nil {
		t.Fatal(resp.Body.Close(), "no error")
	}
	b.Check(t, door(false).Fault(err), "nothing was lost")
}

// closing tells when a connection is closed.
type closing struct {
	net.Conn
	closed func()
}

func (c *closing) Close() error {
	c.closed()
	return c.Conn.Close()
}

// TestFaultAdvice: what helps depends on the fault, and names the setting.
func TestFaultAdvice(t *testing.T) {
	for says, err := range map[string]error{
		"its certificate is of an authority that is not known here; nothing was lost; name the file of its authority with store_ca, then: writ doctor": x509.UnknownAuthorityError{},
		"there is no host nowhere; nothing was lost; correct store (--store)":                                                                          &net.DNSError{Name: "nowhere", IsNotFound: true},
		"it does not take the credentials (HTTP 401); nothing was lost; correct store_key":                                                             egress.Status(http.StatusUnauthorized),
		"it has too much to do, or is not ready (HTTP 503); nothing was lost; wait, then":                                                              egress.Status(http.StatusServiceUnavailable),
		"it refuses the request (HTTP 400); nothing was lost; see its log":                                                                             egress.Status(http.StatusBadRequest),
		"it fails; nothing was lost; see its log, then: writ doctor (cause: wat)":                                                                      errors.New("wat"),
		"10.0.0.1:1 is refused: it is a private network; name it; nothing was lost":                                                                    &egress.RefusedError{Place: "10.0.0.1:1", Is: "a private network", Do: "name it"},
	} {
		if got := door(false).Fault(err).Error(); !strings.HasPrefix(got, "the store at x: "+says) {
			t.Errorf("%q, want %q", got, says)
		}
	}
	if got := door(true).Fault(errors.New("confidential")).Error(); strings.Contains(got, "confidential") {
		t.Error(got)
	}
}
