package jetstream

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/storage"
)

const recordsKept = "; records that were acknowledged are kept; "

func started(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port, o.NoLog, o.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not take connections")
	}
	return s
}

func dialed(t *testing.T, url string, o ...nats.Option) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// TestFaults: servers that do not return the stream are reported in words, with what is intact and what
// helps, by the process that opens it.
func TestFaults(t *testing.T) {
	on := started(t, server.Options{JetStream: true, StoreDir: t.TempDir()})
	off := started(t, server.Options{})
	forbids := started(t, server.Options{JetStream: true, StoreDir: filepath.Join(t.TempDir(), "js"), Users: []*server.User{
		{Username: "ana", Password: "right", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.>"}}}},
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0") // a server that takes the connection, and then sends nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			_, _ = conn.Write([]byte("INFO {\"server_id\":\"X\",\"max_payload\":1048576,\"headers\":true}\r\nPONG\r\n"))
		}
	}()
	gone := dialed(t, on.ClientURL())
	gone.Conn().Close()
	for name, c := range map[string]struct {
		js       jetstream.JetStream
		says, do string
	}{
		"no stream":     {dialed(t, on.ClientURL()), "there is no such stream: the first router of the cell makes it, or writ admin cell begin", "correct bus (--bus)"},
		"JetStream off": {dialed(t, off.ClientURL()), "nobody there keeps anything: JetStream is off, or chooses a leader", "wait"},
		"no permission": {dialed(t, forbids.ClientURL(), nats.UserInfo("ana", "right")), "no answer in time", "start it, or correct bus (--bus)"},
		"is silent":     {dialed(t, "nats://"+l.Addr().String()), "no answer in time", "start it, or correct bus (--bus)"},
		"is gone":       {gone, "the connection is closed", "start it, or correct bus (--bus)"},
	} {
		t.Run(name, func(t *testing.T) {
			for what, open := range map[string]func(context.Context) error{
				"Open":    func(ctx context.Context) error { _, err := Open(ctx, c.js, Options{}); return err },
				"NewLook": func(ctx context.Context) error { _, err := NewLook(ctx, c.js, NewStreamIndex()); return err },
				"Create": func(ctx context.Context) error {
					if name == "no stream" {
						return nil // it makes it
					}
					return Create(ctx, c.js, 1)
				},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				err := open(ctx)
				cancel()
				if name == "no stream" && what == "Create" {
					continue
				}
				if err == nil {
					t.Errorf("%s: no error", what)
					continue
				}
				text, _, _ := strings.Cut(err.Error(), " (cause: ")
				if !strings.Contains(text, "stream JOURNAL of the NATS servers: "+c.says+recordsKept+c.do) || !strings.Contains(text, "writ admin cell status") || strings.Contains(text, "nats: ") {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// TestReadFaults: reads of a stream without servers report it in the same words.
func TestReadFaults(t *testing.T) {
	s := started(t, server.Options{JetStream: true, StoreDir: t.TempDir()})
	js := dialed(t, s.ClientURL(), nats.NoReconnect())
	if err := Create(t.Context(), js, 1); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), Stream)
	if err != nil {
		t.Fatal(err)
	}
	j := &Journal{js: js, stream: messages{stream, nil}}
	s.Shutdown()
	s.WaitForShutdown()
	js.Conn().Close()
	_, _, err = j.stream.group(t.Context(), 0, 1, 2)
	for what, err := range map[string]error{"Fresh": j.Fresh(t.Context()), "group": err} {
		if err == nil || !strings.Contains(err.Error(), "the connection is closed"+recordsKept) || !errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
