package natsserver

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// StartSyncAlways runs a server in process that syncs each JetStream message to
// dir before it acknowledges it: what durable messages cost without writ. Whoever
// connects may do everything; Connect knows no role of it.
func StartSyncAlways(dir string) (*Server, error) {
	s := &Server{}
	var err error
	s.ns, err = server.NewServer(&server.Options{
		ServerName: "writ-sync-always", DontListen: true, JetStream: true, StoreDir: dir, SyncAlways: true,
		DisableJetStreamBanner: true, MaxPayload: maxPayload, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, fmt.Errorf("nats server: %w", err)
	}
	s.ns.Start()
	if !s.ns.ReadyForConnections(startTimeout) {
		s.Close()
		return nil, errors.New("nats server: not ready in time")
	}
	return s, nil
}
