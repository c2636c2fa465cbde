package router_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage/blobdir"
)

// TestLargeRegistry: agents that are too large for an intent are pushed by their digest once their
// content is stored; plans run them, they are returned without the content, and missing or invalid
// content is refused.
func TestLargeRegistry(t *testing.T) {
	blobs, err := blobdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := routertest.New(t, routertest.Options{Blobs: blobs})
	keep := func(content []byte) error {
		_, _, err := blobs.Keep(t.Context(), "system", bytes.NewReader(content))
		return err
	}
	words := rand.New(rand.NewPCG(1, 2))
	files := map[string]string{"desk": "name: desk\ndescription: Asks.\ninstructions: Ask.\nsub_agents: [shop]\n", "shop": shop}
	for i := range 4 {
		var text strings.Builder
		for range 6000 {
			fmt.Fprintf(&text, "%x ", words.Uint32())
		}
		files[fmt.Sprintf("a%d", i)] = fmt.Sprintf("name: a%d\ndescription: Knows %d.\ninstructions: %s\n", i, i, text.String())
	}
	r := w.Registry(files)
	if bundle, err := r.Pack(); err != nil || bundle != "" {
		t.Fatalf("fits into an intent: %d bytes, %v", len(bundle), err)
	}
	push := catalog.RegistryPush{Tenant: "default", Revision: 1, Digest: r.Digest()}
	refused(t, w.Admin("registry.push", push), intents.MalformedArgs, "nor of content that is kept")
	died := errors.New("died")
	left := 3 // blobs that are stored before the pusher dies
	if err := r.Keep(func(content []byte) error {
		if left--; left < 0 {
			return died
		}
		return keep(content)
	}); !errors.Is(err, died) {
		t.Fatal(err)
	}
	refused(t, w.Admin("registry.push", push), intents.MalformedArgs, "nor of content that is kept")
	if err := r.Keep(keep); err != nil {
		t.Fatal(err)
	}
	w.Want(w.Admin("registry.push", push), intents.OK)
	w = w.Restart()

	p := w.BegunAgent("p", "desk")
	task := p.Started(1)
	w.PushAgents(2, map[string]string{"shop": cheap})
	got := routertest.Result[catalog.AgentGetResult](w, w.Want(w.Do(task.Intent("agent.get", catalog.AgentGet{})), intents.OK))
	if got.Text != files["desk"] || len(got.Others) != 1 || got.Others[0].Description != "Sells." {
		t.Errorf("agent of the plan: %+v", got)
	}
	push.Revision = 3 // the previous one, which the state has
	w.Want(w.Admin("registry.push", push), intents.OK)
	w.BegunAgent("q", "a3")

	notes := []byte(`{"notes.txt":"` + intents.Digest([]byte("x")) + `"}`)
	for _, content := range [][]byte{[]byte("x"), notes, []byte(`["x"]`)} {
		if err := keep(content); err != nil {
			t.Fatal(err)
		}
	}
	for digest, said := range map[string]string{
		intents.Digest(notes): "is no file of a registry", intents.Digest([]byte(`["x"]`)): "no list of files",
	} {
		refused(t, w.Admin("registry.push", catalog.RegistryPush{Tenant: "default", Revision: 4, Digest: digest}), intents.MalformedArgs, said)
	}
}
