package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
	"aob.dev/writ/storage/sqlite"
)

// keeping is a world with blobs.
type keeping struct {
	*routertest.World
	blobs *blobdir.Blobs
	task  *routertest.Task
}

func newKeeping(t *testing.T, o routertest.Options) *keeping {
	t.Helper()
	blobs, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o.Blobs = blobs
	if o.Holdings == nil {
		o.Holdings = holdings(t)
	}
	w := routertest.New(t, o)
	return &keeping{w, blobs, nil}
}

// holdings is an index of the holders of blobs.
func holdings(t *testing.T) *sqlite.Holdings {
	t.Helper()
	h, err := sqlite.OpenHoldings(t.Context(), filepath.Join(t.TempDir(), "holdings.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func (k *keeping) keep(text string) string {
	k.Helper()
	ref, _, err := k.blobs.Keep(k.Context(), "default", strings.NewReader(text))
	k.Must(err)
	return ref
}

func (k *keeping) exists(ref string) bool {
	k.Helper()
	f, _, err := k.blobs.Fetch(k.Context(), "default", ref)
	if errors.Is(err, storage.ErrNotFound) {
		return false
	}
	k.Must(err)
	_, err = io.Copy(io.Discard, f)
	k.Must(errors.Join(err, f.Close()))
	return true
}

// put stores a text as an artifact does, in an intent of its own.
func (k *keeping) put(text string) (a *intents.Answer, ref string) {
	k.Helper()
	ref = k.keep(text)
	k.Bus.On("artifact.put", routertest.Always(routertest.Done(catalog.ArtifactPutResult{Artifact: ref, SizeBytes: int64(len(text))})))
	raw, err := json.Marshal(text)
	k.Must(err)
	return k.OK(routertest.Intent{By: k.Gateway, Type: "artifact.put", Args: catalog.ArtifactPut{Data: raw}}), ref
}

// from makes an artifact of a blob.
func (k *keeping) from(ref string) *intents.Answer {
	k.Helper()
	k.Bus.On("artifact.put", routertest.Always(routertest.Done(catalog.ArtifactPutResult{Artifact: "cas://" + intents.Digest([]byte("copy")), SizeBytes: 1})))
	return k.OK(routertest.Intent{By: k.Gateway, Type: "artifact.put", Args: catalog.ArtifactPut{From: ref, Name: ref}})
}

func (k *keeping) erase(a *intents.Answer) *intents.Answer {
	k.Helper()
	return erase(k.World, a, catalog.ErasesEnvelope, catalog.ErasesResult, catalog.ErasesBlobs)
}

// Mentioning a digest holds nothing: in text, in a refused intent, in another tenant's, or in a
// read.
func TestMentionHoldsNoBlob(t *testing.T) {
	k := newKeeping(t, routertest.Options{})
	made, ref := k.put("what ana wrote")
	k.OK(routertest.Intent{By: k.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: ref}})
	k.Bus.On("artifact.get", routertest.Always(routertest.Done(catalog.ArtifactGetResult{Artifact: ref, SizeBytes: 1, URL: "/x", ExpiresAt: k.Clock.Now()})))
	k.OK(routertest.Intent{By: k.Gateway, Type: "artifact.get", Args: catalog.ArtifactGet{Artifact: ref}})
	k.Want(k.Do(routertest.Intent{By: k.Planner, Type: "artifact.put", Args: catalog.ArtifactPut{From: ref}}), intents.KeyRole)
	k.Want(k.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	k.Want(k.Do(routertest.Intent{By: k.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: ref}, Tenant: "acme"}), intents.OK)
	k.Want(k.erase(made), intents.OK)
	if k.exists(ref) {
		t.Error("said to be gone, and is there")
	}
	k.Restart()
}

// A blob that another intent of the tenant holds stays. The answer says so, and so does the same
// command again, until that intent's blobs are erased.
func TestEraseListsRemainingCopies(t *testing.T) {
	k := newKeeping(t, routertest.Options{})
	made, ref := k.put("what ana wrote")
	used := k.from(ref)
	for range 2 {
		a := k.Want(k.erase(made), intents.InFlight)
		if want := fmt.Sprintf("%s is held by the intent at position %d", ref, *used.Position); !strings.Contains(a.Reason, want) || !k.exists(ref) {
			t.Fatalf("there %v: %s", k.exists(ref), a.Reason)
		}
		if !strings.Contains(a.Hint, "send the same command again") || !strings.Contains(a.Hint, "--parts blobs") {
			t.Errorf("the hint is %q", a.Hint)
		}
	}
	if where := inRecords(k.World, "what ana wrote"); len(where) > 0 {
		t.Errorf("the intent's words are still in %v", where)
	}
	after := k.Restart() // nothing is forgotten
	k.World = after
	if k.Want(k.erase(made), intents.InFlight); !k.exists(ref) {
		t.Fatal("a restart erased what is held")
	}
	k.Want(erase(k.World, used, catalog.ErasesBlobs), intents.OK)
	if k.exists(ref) {
		t.Error("nobody holds it any more, and it stays")
	}
	k.Want(k.erase(made), intents.OK)
}

// A script that ran, the input of an intent that was held, and a memory hold.
func TestBlobHolders(t *testing.T) {
	for name, hold := range map[string]func(k *keeping, ref string){
		"script": func(k *keeping, ref string) {
			k.Pin("feed", catalog.Pure)
			task := k.Begun("p1", "feed").Started(1)
			k.Bus.On("exec_python", routertest.Always(routertest.Done(catalog.ExecPythonResult{Output: []byte(`1`)},
				routertest.Event("python_script.executed", `{"script_hash":"`+strings.TrimPrefix(ref, "cas://")+`"}`))))
			k.Want(task.Do(task.Intent("exec_python", catalog.ExecPython{Script: "x"})), intents.OK)
		},
		"input": func(k *keeping, ref string) { k.from(ref) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeping(t, routertest.Options{})
			made, ref := k.put("what ana wrote")
			hold(k, ref)
			if a := k.Want(k.erase(made), intents.InFlight); !strings.Contains(a.Reason, "held by the intent at position") || !k.exists(ref) {
				t.Errorf("there %v: %s", k.exists(ref), a.Reason)
			}
		})
	}
	t.Run("memory", func(t *testing.T) {
		remembered := true
		k := newKeeping(t, routertest.Options{Remembered: func(context.Context, string, string) (bool, error) { return remembered, nil }})
		made, ref := k.put("what ana wrote")
		if a := k.Want(k.erase(made), intents.InFlight); !strings.Contains(a.Reason, "held by a memory") || !k.exists(ref) {
			t.Errorf("there %v: %s", k.exists(ref), a.Reason)
		}
		remembered = false
		if k.Want(k.erase(made), intents.OK); k.exists(ref) {
			t.Error("it stays")
		}
	})
}

// A failed erasure delays no other, and is not reported as done.
func TestFailedErasureHoldsUpNoOther(t *testing.T) {
	broken := true
	var bad string
	k := newKeeping(t, routertest.Options{Remembered: func(_ context.Context, _, digest string) (bool, error) {
		if broken && "cas://"+digest == bad {
			return false, errors.New("the store is down")
		}
		return false, nil
	}})
	first, ref := k.put("first text")
	bad = ref
	second, other := k.put("second text")
	k.Want(k.erase(first), intents.InFlight)
	k.Want(k.erase(second), intents.OK)
	if !k.exists(ref) || k.exists(other) {
		t.Fatalf("first there %v, second there %v", k.exists(ref), k.exists(other))
	}
	k.Want(k.erase(first), intents.InFlight)
	broken = false
	k.Want(k.erase(first), intents.OK)
	if k.exists(ref) || len(inRecords(k.World, "first text")) > 0 {
		t.Error("it is there still")
	}
}

// The blobs of an intent are unknown if only its text was erased: the erasure is not reported as
// done then.
func TestEraseBlobsOfErasedIntent(t *testing.T) {
	k := newKeeping(t, routertest.Options{})
	made, ref := k.put("what ana wrote")
	k.Want(erase(k.World, made, catalog.ErasesEnvelope, catalog.ErasesResult), intents.OK)
	if a := k.Want(k.erase(made), intents.InFlight); !strings.Contains(a.Reason, "not known any more") || !k.exists(ref) {
		t.Errorf("there %v: %s", k.exists(ref), a.Reason)
	}
}

// An erasure waits for an index that is behind; one of another journal is rebuilt.
func TestHoldingsAreRebuilt(t *testing.T) {
	store := holdings(t)
	k := newKeeping(t, routertest.Options{Holdings: store})
	made, ref := k.put("what ana wrote")
	used := k.from(ref)
	k.Want(k.erase(made), intents.InFlight) // the index has reached this
	k.Must(store.Clear(t.Context()))
	k.Must(store.Put(t.Context(), 2, "sha256:of another journal", []storage.Holding{{Tenant: "default", Digest: "sha256:0", Position: 1}}, nil))
	k.World = k.Restart()
	// Only the index had the blobs that the intent named.
	if a := k.Want(k.erase(made), intents.InFlight); !strings.Contains(a.Reason, "not known any more") || !k.exists(ref) {
		t.Errorf("there %v: %s", k.exists(ref), a.Reason)
	}
	if of, err := store.Holders(t.Context(), "default", strings.TrimPrefix(ref, "cas://")); err != nil || !slices.Contains(of, *used.Position) {
		t.Errorf("who holds it is not found again: %v %v", of, err)
	}
	if of, err := store.Holders(t.Context(), "default", "sha256:0"); err != nil || len(of) > 0 {
		t.Errorf("what another journal said stays: %v %v", of, err)
	}
}

// stuck is a store that fails until it is released.
type stuck struct {
	*sqlite.Holdings
	free chan struct{}
}

func (s stuck) Put(ctx context.Context, next int64, last string, held []storage.Holding, freed []int64) error {
	select {
	case <-s.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Holdings.Put(ctx, next, last, held, freed)
}

// An erasure waits until the index has reached its own position: a holder may be recorded right
// before it.
func TestErasureWaitsForTheIndex(t *testing.T) {
	store := stuck{holdings(t), make(chan struct{})}
	k := newKeeping(t, routertest.Options{Holdings: store})
	made, ref := k.put("what ana wrote")
	used := k.from(ref)
	answered := make(chan *intents.Answer)
	go func() { answered <- k.erase(made) }()
	for k.Journal.Next() <= *used.Position+2 { // until the erasure is committed
		runtime.Gosched()
	}
	close(store.free)
	if a := <-answered; a.Code != intents.InFlight || !strings.Contains(a.Reason, fmt.Sprintf("position %d", *used.Position)) || !k.exists(ref) {
		t.Errorf("there %v: %s %s", k.exists(ref), a.Code, a.Reason)
	}
}
