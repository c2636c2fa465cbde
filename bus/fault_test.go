package bus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/testing/egresstest"
)

// TestConnectFaults: errors about failing servers are in plain words and name the setting that
// helps.
func TestConnectFaults(t *testing.T) {
	broken := egresstest.Servers(t)
	at := func(name string) string { return "nats://" + strings.TrimPrefix(broken[name].URL, "http://") }
	guarded, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, Username: "ana", Password: "right"})
	if err != nil {
		t.Fatal(err)
	}
	guarded.Start()
	t.Cleanup(guarded.WaitForShutdown)
	t.Cleanup(guarded.Shutdown)
	if !guarded.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not take connections")
	}
	for name, c := range map[string]struct{ url, says, do string }{
		"refuses":        {at("refuses"), "no server answers there", "start it, or correct bus (--bus)"},
		"is silent":      {at("is silent"), "no answer in time", "start it, or correct bus (--bus)"},
		"hangs up":       {at("hangs up"), "it closed the connection without an answer", "start it, or correct bus (--bus)"},
		"wrong password": {guarded.ClientURL(), "it does not take the credentials", "correct bus_keys (--bus-keys), which writ admin cell accounts makes"},
		"no TLS":         {strings.Replace(guarded.ClientURL(), "nats", "tls", 1), "it speaks no TLS", "correct bus (--bus)"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := bus.Connect(ctx, bus.Options{URL: c.url, User: "router", Password: "confidential"})
		cancel()
		if err == nil {
			t.Errorf("%s: connected", name)
			continue
		}
		text, _, _ := strings.Cut(err.Error(), " (cause: ")
		if !strings.HasPrefix(text, "NATS at "+c.url+", as router: ") || !strings.Contains(text, c.says+"; nothing was begun; "+c.do) || strings.Contains(text, "nats: ") || strings.Contains(text, "confidential") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStreamFaults: errors of servers without JetStream are in plain words too.
func TestStreamFaults(t *testing.T) {
	off, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	off.Start()
	t.Cleanup(off.WaitForShutdown)
	t.Cleanup(off.Shutdown)
	if !off.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not take connections")
	}
	c, err := bus.Connect(t.Context(), bus.Options{URL: off.ClientURL(), User: "router"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	_, look := bus.LookAtCell(t.Context(), c)
	for what, err := range map[string]error{"bucket writ": bus.EnsureCell(t.Context(), c), "stream FRAMES": bus.EnsureFrames(t.Context(), c), "stream JOURNAL": look} {
		text := ""
		if err != nil {
			text, _, _ = strings.Cut(err.Error(), " (cause: ")
		}
		if !strings.HasPrefix(text, what+" of the NATS servers: ") || !strings.Contains(text, "JetStream is off") || !strings.Contains(text, "records that were acknowledged are kept") || strings.Contains(text, "nats:") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestPlain: no library error is reported in its own words alone, and each remains in the error
// chain.
func TestPlain(t *testing.T) {
	for _, err := range []error{
		nats.ErrNoServers, nats.ErrTimeout, nats.ErrConnectionClosed, nats.ErrAuthorization, nats.ErrPermissionViolation, nats.ErrSecureConnRequired,
		nats.ErrSecureConnWanted, nats.ErrNoInfoReceived, nats.ErrNoResponders, nats.ErrMaxPayload, nats.ErrSlowConsumer, nats.ErrReconnectBufExceeded,
	} {
		if got := bus.Plain(err); !errors.Is(got, err) || strings.Contains(got.Error(), "nats:") {
			t.Errorf("%v: %v", err, got)
		}
	}
}
