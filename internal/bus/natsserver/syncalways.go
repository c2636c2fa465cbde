package natsserver

import (
	"context"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// SyncAlways is a server in process that syncs each JetStream message to its
// directory before it acknowledges it: what durable messages cost without writ.
type SyncAlways struct {
	server *Server
	js     jetstream.JetStream
}

// syncAlwaysStream is its stream, and the subject of that.
const syncAlwaysStream = "bench"

// StartSyncAlways starts the server and makes its stream.
func StartSyncAlways(ctx context.Context, dir string) (*SyncAlways, error) {
	s := &SyncAlways{server: &Server{}}
	err := s.server.begin(&server.Options{
		ServerName: "writ-sync-always", DontListen: true, JetStream: true, StoreDir: dir, SyncAlways: true,
		DisableJetStreamBanner: true, MaxPayload: maxPayload, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect("", nats.InProcessServer(s.server))
	if err == nil {
		s.js, err = jetstream.New(nc)
	}
	if err == nil {
		_, err = s.js.CreateStream(ctx, jetstream.StreamConfig{Name: syncAlwaysStream, Subjects: []string{syncAlwaysStream}, Storage: jetstream.FileStorage})
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Publish returns when the server has stored the message.
func (s *SyncAlways) Publish(ctx context.Context, data []byte) error {
	_, err := s.js.Publish(ctx, syncAlwaysStream, data)
	return err
}

// Close ends the connection and the server.
func (s *SyncAlways) Close() {
	if s.js != nil {
		s.js.Conn().Close()
	}
	s.server.Close()
}
