//go:build integration

package opensearch_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"aob.dev/writ/internal/testing/opensearchtest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// server is the one of all tests that do not harm it.
var server *opensearchtest.Server

func TestMain(m *testing.M) {
	code := func() int {
		var err error
		if server, err = opensearchtest.Start(context.Background(), opensearchtest.Options{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Close()
		return m.Run()
	}()
	os.Exit(code)
}

// dimension of the embeddings that the store under test is made for.
const dimension = 4

func config(prefix string) opensearch.Config {
	return opensearch.Config{
		URL: server.URL, Prefix: prefix, Dimension: dimension, Check: storage.NewCheck(dimension),
	}
}

// visible is a store that can wait until its searches find what was written.
type visible struct{ *opensearch.Documents }

func (v visible) Refresh(ctx context.Context) error {
	return v.Documents.Refresh(ctx, storage.Indices...)
}

func open(t testing.TB, prefix string) visible {
	t.Helper()
	d, err := opensearch.Open(config(prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return visible{d}
}
