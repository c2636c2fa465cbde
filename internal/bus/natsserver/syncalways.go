package natsserver

import "github.com/nats-io/nats-server/v2/server"

// StartSyncAlways runs a server in process that syncs each JetStream message to
// dir before it acknowledges it: what durable messages cost without writ. Whoever
// connects may do everything; Connect knows no role of it.
func StartSyncAlways(dir string) (*Server, error) {
	s := &Server{}
	err := s.begin(&server.Options{
		ServerName: "writ-sync-always", DontListen: true, JetStream: true, StoreDir: dir, SyncAlways: true,
		DisableJetStreamBanner: true, MaxPayload: maxPayload, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
