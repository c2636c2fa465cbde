package natsserver_test

import (
	"testing"

	"aob.dev/writ/internal/bus/natsserver"
)

// TestSyncAlwaysCluster: a message of a cluster is stored by several servers.
func TestSyncAlwaysCluster(t *testing.T) {
	s, err := natsserver.StartSyncAlways(t.Context(), t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Publish(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
}
