package sqlite_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

func openHoldings(t *testing.T, path string) *sqlite.Holdings {
	t.Helper()
	h, err := sqlite.OpenHoldings(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// TestHoldings: what was put is found after reopening, by tenant and digest; an unreadable
// file is created again.
func TestHoldings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holdings.db")
	h := openHoldings(t, path)
	held := []storage.Holding{{Tenant: "acme", Digest: "sha256:a", Position: 9}, {Tenant: "acme", Digest: "sha256:a", Position: 3}, {Tenant: "other", Digest: "sha256:a", Position: 4}}
	for range 2 {
		if err := h.Put(t.Context(), 10, "sha256:last", held, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Want(t.Context(), 3, []string{"sha256:a", "sha256:b"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Want(t.Context(), 4, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = openHoldings(t, path)
	if next, last, err := h.Next(t.Context()); next != 10 || last != "sha256:last" || err != nil {
		t.Errorf("%d %s %v", next, last, err)
	}
	if of, err := h.Holders(t.Context(), "acme", "sha256:a"); !slices.Equal(of, []int64{3, 9}) || err != nil {
		t.Errorf("%v %v", of, err)
	}
	for position, want := range map[int64][]string{3: {"sha256:a", "sha256:b"}, 4: nil} {
		if got, known, err := h.WantedBlobs(t.Context(), position); !slices.Equal(got, want) || !known || err != nil {
			t.Errorf("%d: %v %v %v", position, got, known, err)
		}
	}
	if _, known, err := h.WantedBlobs(t.Context(), 5); known || err != nil {
		t.Errorf("nobody wanted 5: %v %v", known, err)
	}
	if err := h.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if of, err := h.Holders(t.Context(), "acme", "sha256:a"); len(of) > 0 || err != nil {
		t.Errorf("cleared: %v %v", of, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("this is no database, and was not made by one"), 0o600); err != nil {
		t.Fatal(err)
	}
	h = openHoldings(t, path)
	if next, last, err := h.Next(t.Context()); next != 0 || last != "" || err != nil {
		t.Errorf("of a damaged file: %d %s %v", next, last, err)
	}
}
