package artifacts_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/executors/artifacts"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

func open(t *testing.T) (*blobdir.Blobs, *executortest.Executor) {
	t.Helper()
	b, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := func(reader intents.Principal, client, ref string, now time.Time) (string, time.Time, error) {
		return "/" + reader.Tenant + "/" + reader.UserID + client + "/" + ref, now.UTC().Add(time.Minute).Truncate(time.Second), nil
	}
	return b, executortest.New(t, artifacts.Name, nil, artifacts.Handlers(artifacts.Config{Blobs: b, Link: link, Now: time.Now}))
}

func put(args catalog.ArtifactPut, inputs ...intents.Input) executortest.Intent {
	in := executortest.Intent{Type: "artifact.put", Args: args}
	in.Ticket.Inputs = inputs
	return in
}

func TestPutThenGet(t *testing.T) {
	b, e := open(t)
	ref, _, err := b.Keep(t.Context(), "acme", strings.NewReader(`"kept"`))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		intent executortest.Intent
		want   string
	}{
		"text":  {put(catalog.ArtifactPut{Data: json.RawMessage(`"a\nb"`), MediaType: "text/plain", Name: "a.txt"}), "a\nb"},
		"JSON":  {put(catalog.ArtifactPut{Data: json.RawMessage(`{"n":1}`)}), `{"n":1}`},
		"blob":  {put(catalog.ArtifactPut{From: ref}, intents.Input{Pointer: "/data", Ref: ref, SHA256: strings.TrimPrefix(ref, "cas://")}), `"kept"`},
		"value": {put(catalog.ArtifactPut{From: ref}, intents.Input{Pointer: "/data", Value: []byte(`"v"`), SHA256: intents.Digest(nil)}), "v"},
	} {
		t.Run(name, func(t *testing.T) {
			var kept catalog.ArtifactPutResult
			e.Must(t, tt.intent, &kept)
			if want := "cas://" + intents.Digest([]byte(tt.want)); kept.Artifact != want || kept.SizeBytes != int64(len(tt.want)) {
				t.Fatalf("%+v, want %s", kept, want)
			}
			f, _, err := b.Fetch(t.Context(), "acme", kept.Artifact)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(f)
			if err != nil || string(got) != tt.want || f.Close() != nil {
				t.Fatalf("%q, %v", got, err)
			}
			var at catalog.ArtifactGetResult
			e.Must(t, executortest.Intent{Type: "artifact.get", Args: catalog.ArtifactGet{Artifact: kept.Artifact}}, &at)
			if at.SizeBytes != kept.SizeBytes || at.URL != "/acme/ana/"+kept.Artifact || !at.ExpiresAt.After(time.Now()) {
				t.Fatalf("%+v", at)
			}
		})
	}
}

// Another tenant's artifact and one that never was are the same: not there.
func TestGetOfAnotherTenant(t *testing.T) {
	b, e := open(t)
	ref, _, err := b.Keep(t.Context(), "other", strings.NewReader("theirs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{ref, "cas://" + intents.Digest([]byte("never"))} {
		if r := e.Do(t, executortest.Intent{Type: "artifact.get", Args: catalog.ArtifactGet{Artifact: ref}}); r.Code != intents.NotFound {
			t.Errorf("%s: %+v", ref, r)
		}
	}
}

// TestPutFile: a file of the task's step, or of the plan where there is no task, is
// kept for good, and nobody else's is.
func TestPutFile(t *testing.T) {
	b, e := open(t)
	for name, tt := range map[string]struct {
		at      storage.Scope
		outside bool
		code    intents.Code
	}{
		"the step's":            {storage.Scope{Tenant: "acme", Plan: "plan_1", Revision: 1, Step: 1}, false, intents.OK},
		"the plan's":            {storage.Scope{Tenant: "acme", Plan: "plan_1"}, true, intents.OK},
		"the plan's, of a task": {storage.Scope{Tenant: "acme", Plan: "plan_1"}, false, intents.NotFound},
		"a step's, of no task":  {storage.Scope{Tenant: "acme", Plan: "plan_1", Revision: 1, Step: 1}, true, intents.NotFound},
		"another plan's":        {storage.Scope{Tenant: "acme", Plan: "plan_2"}, true, intents.NotFound},
		"another tenant's":      {storage.Scope{Tenant: "other", Plan: "plan_1"}, true, intents.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := b.Put(t.Context(), tt.at, strings.NewReader(name))
			if err != nil {
				t.Fatal(err)
			}
			in := put(catalog.ArtifactPut{From: f.ID}, intents.Input{Pointer: "/data", Ref: f.ID, SHA256: f.SHA256})
			in.NoScope = tt.outside
			if tt.code != intents.OK {
				if r := e.Do(t, in); r.Code != tt.code {
					t.Fatalf("%+v", r)
				}
				return
			}
			var kept catalog.ArtifactPutResult
			e.Must(t, in, &kept)
			if err := b.Wipe(t.Context(), tt.at); err != nil {
				t.Fatal(err)
			}
			r, _, err := b.Fetch(t.Context(), "acme", kept.Artifact)
			if err != nil || "cas://"+f.SHA256 != kept.Artifact {
				t.Fatalf("%+v, %v", kept, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
