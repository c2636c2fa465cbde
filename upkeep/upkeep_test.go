package upkeep

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

func config(dir string) node.Config {
	return node.Config{Dir: dir, Listen: "127.0.0.1:0", Model: offline.Model{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
}

// open opens a node and closes it with the test.
func open(t testing.TB, cfg node.Config) *node.Node {
	t.Helper()
	n, err := node.Open(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, n.Close()) })
	return n
}

// run starts a node and waits until it is ready. stop ends it and returns what Run returned; the
// end of the test calls it too.
func run(t testing.TB, n *node.Node) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Run(ctx, ready) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("not ready: %v", err)
	}
	t.Cleanup(func() { must(t, stop()) })
	return stop
}

// once runs a node from start to stop.
func once(t *testing.T, cfg node.Config, look ...func(*testing.T, *node.Node)) (records []storage.Record) {
	t.Helper()
	n, err := node.Open(t.Context(), cfg)
	must(t, err)
	stop := run(t, n)
	for _, f := range look {
		f(t, n)
	}
	records = all(t, n)
	must(t, errors.Join(stop(), n.Close()))
	return records
}

// published waits until everything that is durable has its leaf.
func published(t *testing.T, n *node.Node) {
	t.Helper()
	a, err := n.Archive(t.Context())
	must(t, err)
	must(t, a.Close())
}

// all reads the whole journal.
func all(t *testing.T, n *node.Node) []storage.Record {
	t.Helper()
	var out []storage.Record
	for r, err := range n.Records().Scan(t.Context(), 0) {
		must(t, err)
		out = append(out, r)
	}
	return out
}

// submit submits an intent of a node's operator.
func submit(ctx context.Context, n *node.Node, cfg node.Config, typ string, args any) error {
	keys, err := keydir.Load(datadir.Keys(cfg.Dir))
	if err != nil {
		return err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	signed, _, err := intents.Sign(keys[intents.RoleOperator], intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: typ, Args: raw}, Actor: intents.Actor{UserID: "local", Tenant: "system"},
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(cfg.Now()), TTLSec: 60, Audience: n.Origin(), IdempotencyKey: "rnd_" + rand.Text()},
	})
	if err != nil {
		return err
	}
	a, err := n.Router().Submit(ctx, signed)
	if err != nil {
		a = router.RefusalAnswer(signed, err)
	}
	if a.Code != intents.OK {
		return fmt.Errorf("%s: %s: %s", typ, a.Code, a.Reason)
	}
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// documentsBeside opens the documents of a directory that a node may use.
func documentsBeside(t *testing.T, dir string) datadir.Documents {
	t.Helper()
	d, err := openDocuments(t.Context(), dir, datadir.DocumentsAt{})
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

// keeping opens the documents of a directory that no node uses.
func keeping(t *testing.T, dir string, use func(storage.Documents)) {
	t.Helper()
	d, err := openDocuments(t.Context(), dir, datadir.DocumentsAt{})
	must(t, err)
	use(d)
	must(t, d.Close())
}
