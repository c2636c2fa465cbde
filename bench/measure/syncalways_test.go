package measure

import (
	"testing"
)

// TestSyncAlwaysCluster: a message of a cluster is stored by several servers.
func TestSyncAlwaysCluster(t *testing.T) {
	s, err := startSyncAlways(t.Context(), t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.publish(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
}
