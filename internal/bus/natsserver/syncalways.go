package natsserver

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// SyncAlways is a server in process, or a cluster of some, that syncs each JetStream
// message to its directory before it acknowledges it: what durable messages cost without
// writ.
type SyncAlways struct {
	servers []*Server
	js      jetstream.JetStream
}

// syncAlwaysStream is its stream, and the subject of that.
const syncAlwaysStream = "bench"

// StartSyncAlways starts so many servers, of which several listen on 127.0.0.1 alone, and
// makes a stream that each of them has.
func StartSyncAlways(ctx context.Context, dir string, servers int) (s *SyncAlways, err error) {
	s = &SyncAlways{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	options := make([]*server.Options, servers)
	var routes []*url.URL
	for i := range options {
		name := fmt.Sprint("writ-sync-always-", i)
		options[i] = &server.Options{
			ServerName: name, DontListen: servers == 1, Host: "127.0.0.1", Port: server.RANDOM_PORT,
			JetStream: true, StoreDir: filepath.Join(dir, name), SyncAlways: true,
			DisableJetStreamBanner: true, MaxPayload: maxPayload, NoLog: true, NoSigs: true,
		}
		if servers == 1 {
			continue
		}
		addr, err := freeAddr(ctx, "127.0.0.1:0")
		if err != nil {
			return s, err
		}
		options[i].Cluster = server.ClusterOpts{Name: "writ-sync-always", Host: addr.IP.String(), Port: addr.Port}
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: addr.String()})
	}
	for _, o := range options {
		o.Routes = routes
		one := &Server{}
		if err := one.begin(o); err != nil {
			return s, err
		}
		s.servers = append(s.servers, one)
	}
	return s, s.makeStream(ctx)
}

// makeStream waits until the servers have agreed on who leads them.
func (s *SyncAlways) makeStream(ctx context.Context) error {
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

// Publish returns when the server has stored the message; of a cluster, when most have.
func (s *SyncAlways) Publish(ctx context.Context, data []byte) error {
	_, err := s.js.Publish(ctx, syncAlwaysStream, data)
	return err
}

// JetStream is the connection.
func (s *SyncAlways) JetStream() jetstream.JetStream { return s.js }

// Close ends the connection and the servers.
func (s *SyncAlways) Close() {
	if s.js != nil {
		s.js.Conn().Close()
	}
	for _, one := range s.servers {
		one.Close()
	}
}
