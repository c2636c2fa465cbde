package recorder_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/executors/memory"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage/blobdir"
	"aob.dev/writ/storage/sqlite"
)

// TestErasedUserOfMany: a user with many intents, plans and artifacts is erased within a minute, and then
// no file has a word of theirs. WRIT_INTENTS says how many intents.
func TestErasedUserOfMany(t *testing.T) {
	total := 300
	if text := os.Getenv("WRIT_INTENTS"); text != "" {
		var err error
		if total, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	blobs, err := blobdir.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	holdings, err := sqlite.OpenHoldings(t.Context(), filepath.Join(dir, "holdings.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holdings.Close() })
	live := documentsIn(t, dir)
	w, f := wokenOn(t, live, routertest.Options{Open: journalIn(t, dir), Blobs: blobs, Holdings: holdings, Remembered: func(ctx context.Context, tenant, digest string) (bool, error) {
		return memory.NamesBlob(ctx, live, tenant, digest, routertest.Began)
	}})
	began, n := time.Now(), 0
	for i := 0; n < total; i++ {
		told, end := w.Tell(fmt.Sprint("p", i), "annasword", []string{"complete", "failed", "cancel"}[i%3])
		end()
		for range 10 {
			text := fmt.Sprintf("annasword %d", n)
			ref, size, err := blobs.Keep(t.Context(), "default", strings.NewReader(text))
			w.Must(err)
			w.Bus.On("artifact.put", routertest.Always(routertest.Done(catalog.ArtifactPutResult{Artifact: ref, SizeBytes: size})))
			data, err := json.Marshal(text)
			w.Must(err)
			w.OK(routertest.Intent{By: w.Gateway, Type: "artifact.put", Args: catalog.ArtifactPut{Data: data}})
			n++
		}
		n += len(told.Intents) + len(told.Others)
	}
	f.caughtUp()
	t.Logf("%d intents: %d records in %v", n, w.Journal.Next(), time.Since(began))
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ana", Roles: []string{"user"}, Disabled: true}}), intents.OK)

	began = time.Now()
	erase := w.Sign(routertest.Intent{By: w.Operator, Type: "user.erase", Args: catalog.UserErase{Tenant: "default", UserID: "ana", Reason: "asked for"}})
	a := w.Send(erase)
	answered := time.Since(began)
	w.Must(clock.Every(t.Context(), 10*time.Millisecond, func() bool { a = w.Send(erase); return a.Code != intents.InFlight }))
	if r := routertest.Result[catalog.UserEraseResult](w, a); int(r.Intents) < total || len(w.Dir.Erasing()) > 0 {
		t.Errorf("%+v, and waiting %v", r, w.Dir.Erasing())
	}
	erased := time.Since(began)
	f.caughtUp()
	took := time.Since(began)
	t.Logf("answered after %v, words erased after %v, documents after %v", answered, erased, took)
	if took > time.Minute {
		t.Error("it took more than a minute")
	}
	var left []string
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if clock.Every(soon, 100*time.Millisecond, func() bool { left = filesWith(t, dir, "annasword"); return len(left) == 0 }) != nil {
		t.Errorf("still in %v", left[:min(len(left), 5)])
	}
	t.Logf("bytes after %v", time.Since(began))
	f.stop()
}
