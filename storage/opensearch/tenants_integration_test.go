//go:build integration

package opensearch_test

import (
	"bytes"
	"slices"
	"testing"

	"aob.dev/writ/storage"
)

// TestIntegrationTenants: tenants are known by their documents.
func TestIntegrationTenants(t *testing.T) {
	d := open(t, "tenants-")
	if list, err := d.Tenants(t.Context(), storage.IndexMemory); err != nil || len(list) != 0 {
		t.Fatalf("at first %v, %v", list, err)
	}
	for _, tenant := range []string{"beta", "acme", "beta"} {
		doc := memory(tenant, 1)
		doc.Body = bytes.ReplaceAll(doc.Body, []byte("acme"), []byte(tenant))
		if err := d.Put(t.Context(), tenant, storage.IndexMemory, doc); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := d.Tenants(t.Context(), storage.IndexMemory); err != nil || !slices.Equal(list, []string{"acme", "beta"}) {
		t.Errorf("%v, %v", list, err)
	}
}
