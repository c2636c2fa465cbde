package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"

	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/storage/ledger"
)

// TestLedgerServed: any tlog client can read and check the log over HTTP; an
// intent's receipt and inclusion proof fit together under its checkpoint; and
// both are shown only to those who may see the intent.
func TestLedgerServed(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	s.ask(s.as("ann"), "What is the largest of 3, 7 and 5?")
	list := s.intents("")
	o := list[len(list)-1]
	keys := s.jwks()
	origin := s.node.Origin()
	c := s.checkpoint(origin, keys, s.node.Records().Next())

	base, err := url.Parse(s.url + "/ledger/")
	if err != nil {
		t.Fatal(err)
	}
	remote, err := client.NewHTTPFetcher(base, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	vkey, err := ledger.VKey(origin, keyOf(t, keys, c.KID).Public)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	if err := fsck.New(origin, verifier, remote, leafHashes, fsck.Opts{N: 1}).Check(t.Context()); err != nil {
		t.Fatal("fsck:", err)
	}

	var proof struct {
		IntentID  string           `json:"intent_id"`
		Receipt   string           `json:"receipt"`
		Inclusion ledger.Inclusion `json:"inclusion"`
		Keys      intents.JWKS     `json:"keys"`
	}
	path := "/v1/intents/" + o.Decision.IntentID
	if status := s.read(path+"/proof", "default", o.User, &proof); status != http.StatusOK {
		t.Fatalf("proof: HTTP %d", status)
	}
	in := proof.Inclusion
	cp, err := ledger.OpenCheckpoint(in.Note, origin, keyOf(t, proof.Keys, c.KID))
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.VerifyInclusion(cp, in.Position, ledger.LeafHash([]byte(in.Leaf)), in.Hashes); err != nil {
		t.Fatal(err)
	}
	receipt, err := intents.OpenReceipt(proof.Receipt, keysFunc(t, proof.Keys))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ledger.ParseLeaf([]byte(in.Leaf))
	if err != nil {
		t.Fatal(err)
	}
	if receipt.RecordDigest != leaf.RecordDigest || receipt.Position != leaf.Position || proof.IntentID != o.Decision.IntentID {
		t.Fatalf("receipt %+v, leaf %+v", receipt, leaf)
	}
	for _, of := range []struct{ path, tenant, user string }{{"/proof", "default", "eve"}, {"/receipt", "system", "local"}} {
		if status := s.read(path+of.path, of.tenant, of.user, nil); status != http.StatusNotFound {
			t.Errorf("%s for %s of %s: HTTP %d", of.path, of.user, of.tenant, status)
		}
	}
}

// TestJournalLost: a node whose journal was lost does not begin anew beside the old
// proofs; it prints the remedy.
func TestJournalLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	t.Run("first", func(t *testing.T) { start(t, setup{Dir: dir}) })
	if err := os.RemoveAll(filepath.Join(dir, "journal")); err != nil {
		t.Fatal(err)
	}
	n, err := node.Open(t.Context(), node.Config{Dir: dir, Documents: documents(dir), Model: offline.Model{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		_ = n.Close()
	}
	if !errors.Is(err, datadir.ErrPartMissing) || !strings.Contains(err.Error(), "Put it back") {
		t.Fatalf("opened: %v", err)
	}
}

func (s *system) jwks() intents.JWKS {
	s.t.Helper()
	var keys intents.JWKS
	if status, p := s.call(person{}, http.MethodGet, "/.well-known/jwks.json", nil, &keys); status != http.StatusOK {
		s.t.Fatalf("keys: HTTP %d %+v", status, p)
	}
	return keys
}

// checkpoint waits until the published checkpoint has so many leaves.
func (s *system) checkpoint(origin string, keys intents.JWKS, size int64) ledger.Checkpoint {
	s.t.Helper()
	var list []intents.Key
	for _, j := range keys.Keys {
		list = append(list, keyOf(s.t, keys, j.KID))
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		status, text := s.raw("/ledger/checkpoint", "")
		c, err := ledger.OpenCheckpoint(text, origin, list...)
		if status == http.StatusOK && err == nil && c.Size >= size {
			return c
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			s.t.Fatalf("no checkpoint of %d leaves: HTTP %d %v\n%s", size, status, err, text)
		}
	}
}

// read asks the router's interface under a grant of its own gateway.
func (s *system) read(path, tenant, user string, out any) int {
	s.t.Helper()
	key, err := intents.ReadKey(filepath.Join(s.dir, "keys", "gateway.pem"), intents.RoleGateway)
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	grant, err := intents.IssueGrant(key, intents.Grant{
		Issuer: s.node.Origin(), Audience: s.node.Origin(), Subject: user, Tenant: tenant,
		Roles: []string{"user"}, Act: intents.Act{Client: "test", AMR: []string{"none"}}, IssuedAt: now.Unix(), Expires: now.Add(time.Minute).Unix(), ID: "g", Use: intents.UseRead,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	status, body := s.raw(path, "Bearer "+grant)
	if status == http.StatusOK && out != nil {
		if err := json.Unmarshal([]byte(body), out); err != nil {
			s.t.Fatal(err)
		}
	}
	return status
}

func (s *system) raw(path, authorization string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", authorization)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func keyOf(t *testing.T, set intents.JWKS, kid string) intents.Key {
	t.Helper()
	for _, j := range set.Keys {
		if j.KID == kid {
			k, err := j.ToKey()
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
	}
	t.Fatalf("no key %s", kid)
	return intents.Key{}
}

func keysFunc(t *testing.T, set intents.JWKS) intents.Keys {
	t.Helper()
	return intents.KeysFunc(func(kid string) (intents.Key, error) { return keyOf(t, set, kid), nil })
}

func leafHashes(bundle []byte) ([][]byte, error) {
	var b api.EntryBundle
	if err := b.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	var out [][]byte
	for _, e := range b.Entries {
		out = append(out, ledger.LeafHash(e))
	}
	return out, nil
}

// TestLedgerOutage: while the ledger cannot be written, intents, plans and events
// go on, and their proofs wait; when it can again, every record gets its leaf.
func TestLedgerOutage(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	keys, origin := s.jwks(), s.node.Origin()
	s.checkpoint(origin, keys, s.node.Records().Next())
	state := filepath.Join(s.dir, "ledger", ".state", "treeState")
	good, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, []byte("no tree"), 0o600); err != nil {
		t.Fatal(err)
	}
	turn := s.ask(s.as("ann"), "What is the largest of 3, 7 and 5?")
	if len(turn.Events) == 0 || len(turn.Intents) == 0 {
		t.Fatalf("%+v", turn)
	}
	last := turn.Intents[len(turn.Intents)-1]
	path := "/v1/intents/" + last.Decision.IntentID
	if status := s.read(path+"/receipt", "default", "ann", nil); status != http.StatusOK {
		t.Errorf("receipt during the outage: HTTP %d", status)
	}
	if status := s.read(path+"/proof", "default", "ann", nil); status != http.StatusConflict {
		t.Errorf("proof during the outage: HTTP %d", status)
	}
	if err := os.WriteFile(state, good, 0o600); err != nil {
		t.Fatal(err)
	}
	s.checkpoint(origin, keys, s.node.Records().Next())
	if status := s.read(path+"/proof", "default", "ann", nil); status != http.StatusOK {
		t.Errorf("proof after the outage: HTTP %d", status)
	}
}
