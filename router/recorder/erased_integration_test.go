//go:build integration

package recorder_test

import (
	"bytes"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/opensearchtest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// TestIntegrationErasedUser is TestErasedUser on OpenSearch, whose searches are late: what was written
// just before the erasure is gone, too.
func TestIntegrationErasedUser(t *testing.T) {
	server, err := opensearchtest.Start(t.Context(), opensearchtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	live, err := opensearch.Open(opensearch.Config{URL: server.URL, Prefix: "erased-", Dimension: 4, Check: storage.NewCheck(4)})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if err := live.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, f := woken(t, live)
	_, end := w.Tell("p1", "anas-word", "complete")
	end()
	f.caughtUp()
	before := w.Journal.Next()
	putWords(w, live, "default", "ben", "bens", before-1)
	putWords(w, live, "acme", "ana", "elsewhere", before-1)
	putWords(w, live, "default", "ana", "later", 1<<40)
	putWords(w, live, "default", "ana", "mine", before-1)
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ana", Roles: []string{"user"}, Disabled: true}}), intents.OK)
	w.Want(w.Admin("user.erase", catalog.UserErase{Tenant: "default", UserID: "ana", Reason: "asked for"}), intents.OK)
	f.caughtUp()
	f.stop()
	onlyMineGone(w, live)
	w.Must(live.Refresh(t.Context(), storage.Indices...))
	for _, docs := range dump(t, live, "default") {
		for _, doc := range docs {
			if bytes.Contains(doc.Body, []byte("anas-word")) {
				t.Errorf("%s has words: %s", doc.ID, doc.Body)
			}
		}
	}
}
