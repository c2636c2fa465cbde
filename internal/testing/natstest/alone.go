package natstest

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// Standalone runs a nats-server in this process by a configuration file.
func Standalone(t testing.TB, file string) *server.Server {
	t.Helper()
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("configure the NATS server: %v", err)
	}
	opts.NoLog, opts.NoSigs = true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatalf("make the NATS server: %v", err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(Patience) {
		t.Fatalf("the NATS server takes no connections in %s", Patience)
	}
	return s
}
