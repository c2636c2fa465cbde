package bus_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/internal/testing/natstest"
)

// externalName is the executor of a third party.
const externalName = "x-acme"

// admit admits an external executor and returns its seed.
func admit(t *testing.T, s *natsserver.Server, types ...string) (seed string) {
	t.Helper()
	seed, public, err := bus.NewNKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetExternal([]natsserver.External{{Name: externalName, NKey: public, Types: types}}); err != nil {
		t.Fatal(err)
	}
	return seed
}

// byKey connects with a seed.
func byKey(t *testing.T, seed string) nats.Option {
	t.Helper()
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return nats.Nkey(public, pair.Sign)
}

// dial connects over the listener with plain nats.go.
func dial(t *testing.T, s *natsserver.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.URL(), append(opts, nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func outside(t *testing.T, s *natsserver.Server, seed string) *nats.Conn {
	t.Helper()
	return dial(t, s, byKey(t, seed))
}

// An external executor answers its own types. It is disconnected at once when it is removed from
// the list; other connections are not affected.
func TestExternalExecutors(t *testing.T) {
	s := startOn(t, "127.0.0.1:0")
	router := connect(t, s, natsserver.Router)
	serve(t, connect(t, s, "python"), echo("python", "writ.exec.exec_python"))
	seed := admit(t, s, "x.acme.echo")
	closed := make(chan struct{})
	nc := dial(t, s, byKey(t, seed), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if _, err := nc.QueueSubscribe("writ.exec.x.acme.echo", externalName, func(m *nats.Msg) { _ = m.Respond([]byte("outside " + string(m.Data))) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	if got, err := request(t, router, "writ.exec.x.acme.echo", "x"); got != "outside x" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}

	second := admit(t, s, "x.acme.echo") // in place of the first
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("its connection stays")
	}
	if _, err := request(t, router, "writ.exec.x.acme.echo", "x"); !errors.Is(err, bus.ErrNoResponders) {
		t.Errorf("after the end: %v", err)
	}
	if err := knocked(s.URL(), byKey(t, seed)); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("the old key connects: %v", err)
	}
	outside(t, s, second)
	if got, err := request(t, router, "writ.exec.exec_python", "x"); got == "" || err != nil {
		t.Errorf("our own executor: %q, %v", got, err)
	}
}

// knocked connects, hangs up and returns what the server answered.
func knocked(url string, opts ...nats.Option) error {
	return natstest.Answer(func() error {
		nc, err := nats.Connect(url, opts...)
		if err == nil {
			nc.Close()
		}
		return err
	})
}

// An external executor has only the types that it was admitted for. A key is checked by its
// signature and not by its name.
func TestExternalExecutorsAreChecked(t *testing.T) {
	s := startOn(t, "127.0.0.1:0")
	seed := admit(t, s, "x.acme.echo")
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	for name, option := range map[string]nats.Option{
		"another's signature":   nats.Nkey(public, stranger.Sign),
		"no signature":          nats.Nkey(public, func([]byte) ([]byte, error) { return nil, nil }),
		"a signature of before": nats.Nkey(public, func([]byte) ([]byte, error) { return pair.Sign([]byte("nonce")) }),
		"its name":              nats.UserInfo(externalName, ""),
		"its key as password":   nats.UserInfo(externalName, public),
	} {
		if err := knocked(s.URL(), option); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]natsserver.External{
		"a name of ours": {Name: "python", NKey: public, Types: []string{"x.acme.echo"}},
		"no public key":  {Name: externalName, NKey: seed, Types: []string{"x.acme.echo"}},
	} {
		if err := s.SetExternal([]natsserver.External{o}); err == nil {
			t.Errorf("%s is let in", name)
		}
		if err := knocked(s.URL(), byKey(t, seed)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: who is not in the list connects: %v", name, err)
		}
	}
}

// With a certificate the listener accepts only TLS; in-process connections do not change.
func TestListenerTLS(t *testing.T) {
	cert, roots := selfSigned(t)
	s, err := natsserver.Start(t.Context(), natsserver.Options{
		Dir: t.TempDir(), Listen: "127.0.0.1:0", TLS: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		Executors: executors, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	seed := admit(t, s, "x.acme.echo")
	nc := dial(t, s, byKey(t, seed), nats.Secure(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}))
	if !nc.TLSRequired() {
		t.Error("the server does not insist on TLS")
	}
	if _, err := nc.TLSConnectionState(); err != nil {
		t.Error(err)
	}
	if _, err := nats.Connect(s.URL(), byKey(t, seed), nats.Secure(&tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12})); err == nil {
		t.Error("a client that does not know the certificate connects")
	}
	connect(t, s, natsserver.Router)
}

func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
