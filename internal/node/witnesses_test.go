package node

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
)

// aheadWitness has seen more of every log than there is.
func aheadWitness(t *testing.T) Witness {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, "1000000\n")
	}))
	t.Cleanup(s.Close)
	seed := sha256.Sum256([]byte("ahead"))
	key := append([]byte{4}, ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)...)
	sum := sha256.Sum256(append([]byte("ahead.example\n"), key...))
	w, err := ParseWitness(fmt.Sprintf("ahead.example+%x+%s %s", sum[:4], base64.StdEncoding.EncodeToString(key), s.URL))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// waits starts a node that is not to be ready, and gives what it says of itself.
// ready waits until it is.
func waits(t *testing.T, n *Node) (ready func(), up []health.Condition) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	came, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Run(ctx, came) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	code, status, up := readyz(t, n) // waits in the listener until HTTP is served
	if code != http.StatusServiceUnavailable || status != "not ready" {
		t.Errorf("readyz %d %s %+v", code, status, up)
	}
	return func() {
		t.Helper()
		select {
		case <-came:
		case err := <-ended:
			ended <- nil
			t.Fatalf("not ready: %v", err)
		}
	}, up
}

// A directory that was rolled back is not ready, and nothing is written to it,
// since its witness has seen more; until an operator says that it is the one.
func TestRolledBack(t *testing.T) {
	cfg := config(t.TempDir())
	begun(t, cfg)
	cfg.Witnesses = []Witness{aheadWitness(t)}
	n := open(t, cfg)
	records, leaves := n.journal.Next(), n.ledger.Size()
	ready, up := waits(t, n)
	if len(up) != 1 || up[0].Name != conditionWitness || !strings.Contains(up[0].Do, "writ admin confirm witness") {
		t.Errorf("%+v", up)
	}
	if err := tenantPut(t.Context(), n, "acme"); err == nil {
		t.Error("an intent is taken")
	}
	if n.journal.Next() != records || n.ledger.Size() != leaves {
		t.Error("something was written")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := datadir.Confirm(ctx, cfg.Dir, conditionWitness, cfg.Now); err != nil {
		t.Fatal(err)
	}
	ready()
	if err := tenantPut(t.Context(), n, "acme"); err != nil {
		t.Error(err)
	}
}
