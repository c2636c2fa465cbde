package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// syncAlways is a server in process, or a cluster of some, that syncs each JetStream
// message to its directory before it acknowledges it: what durable messages cost without
// writ.
type syncAlways struct {
	servers []*server.Server
	js      jetstream.JetStream
}

// startTimeout bounds the wait for a server to take connections.
const startTimeout = 10 * time.Second

// syncAlwaysStream is its stream, and the subject of that.
const syncAlwaysStream = "bench"

// startSyncAlways starts so many servers, of which several listen on 127.0.0.1 alone, and
// makes a stream that each of them has.
func startSyncAlways(ctx context.Context, dir string, servers int) (s *syncAlways, err error) {
	s = &syncAlways{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	options := make([]*server.Options, servers)
	var routes []*url.URL
	for i := range options {
		name := fmt.Sprint("writ-sync-always-", i)
		options[i] = &server.Options{
			ServerName: name, DontListen: servers == 1, Host: "127.0.0.1", Port: server.RANDOM_PORT,
			JetStream: true, StoreDir: filepath.Join(dir, name), SyncAlways: true,
			DisableJetStreamBanner: true, MaxPayload: 8 << 20, NoLog: true, NoSigs: true,
		}
		if servers == 1 {
			continue
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0") // for a free port
		if err != nil {
			return s, err
		}
		if err := l.Close(); err != nil {
			return s, err
		}
		addr := l.Addr().(*net.TCPAddr) //nolint:forcetypeassert // a listener for "tcp"
		options[i].Cluster = server.ClusterOpts{Name: "writ-sync-always", Host: addr.IP.String(), Port: addr.Port}
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: addr.String()})
	}
	for _, o := range options {
		o.Routes = routes
		one, err := server.NewServer(o)
		if err != nil {
			return s, err
		}
		one.Start()
		s.servers = append(s.servers, one)
		if !one.ReadyForConnections(startTimeout) {
			return s, errors.New("nats server: not ready in time")
		}
	}
	return s, s.makeStream(ctx)
}

// makeStream waits until the servers have agreed on who leads them.
func (s *syncAlways) makeStream(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*startTimeout)
	defer cancel()
	nc, err := nats.Connect("", nats.InProcessServer(s.servers[0]))
	if err != nil {
		return err
	}
	if s.js, err = jetstream.New(nc); err != nil {
		return err
	}
	for {
		attempt, cancel := context.WithTimeout(ctx, startTimeout/40)
		_, err := s.js.CreateStream(attempt, jetstream.StreamConfig{
			Name: syncAlwaysStream, Subjects: []string{syncAlwaysStream}, Storage: jetstream.FileStorage, Replicas: len(s.servers),
		})
		if err != nil {
			<-attempt.Done() // a server that knows no leader yet does not answer, or refuses at once
		}
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// publish returns when the server has stored the message; of a cluster, when most have.
func (s *syncAlways) publish(ctx context.Context, data []byte) error {
	_, err := s.js.Publish(ctx, syncAlwaysStream, data)
	return err
}

// close ends the connection and the servers.
func (s *syncAlways) close() {
	if s.js != nil {
		s.js.Conn().Close()
	}
	for _, one := range s.servers {
		one.Shutdown()
		one.WaitForShutdown()
	}
}
