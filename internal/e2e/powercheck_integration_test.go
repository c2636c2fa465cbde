//go:build integration && linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// sound examines an unused directory: intact according to the tools, and every acknowledged intent
// at its place.
func (c *cuts) sound() {
	c.t.Helper()
	if c.promises.first == "" {
		return // its log need not have begun
	}
	var h struct {
		OK       bool `json:"ok"`
		Compared bool `json:"compared"`
	}
	raw, ok := c.writ(c.t.Context(), "audit", "fsck", "--json")
	if !ok {
		return
	}
	if err := json.Unmarshal(raw, &h); err != nil || !h.OK || !h.Compared {
		c.t.Errorf("fsck: %v: %s", err, raw)
	}
	c.writ(c.t.Context(), "doctor")
	if mark, err := os.ReadFile(filepath.Join(c.dir, "started")); err != nil || len(mark) == 0 {
		c.t.Errorf("the mark that the log has begun: %q, %v", mark, err)
	}
	records, err := sqlite.OpenRecords(c.t.Context(), filepath.Join(c.dir, "journal"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer records.Close()
	for id, at := range c.promises.intents {
		rec, err := records.Get(c.t.Context(), at)
		if err != nil || rec.Kind != storage.KindIntent {
			c.t.Errorf("acknowledged intent %s is not at %d: %v", id, at, err)
			continue
		}
		if s, err := state.ReadIntent(rec); err != nil || s.Decision.IntentID != id {
			c.t.Errorf("at %d is %s, not intent %s: %v", at, s.Decision.IntentID, id, err)
		}
	}
}

// check compares a started writ with earlier acknowledgements.
func (c *cuts) check() {
	c.t.Helper()
	c.checkExecutors()
	c.checkKeys()
	const nothing = "/agent/artifacts/sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for id, key := range c.apikeys {
		if status := c.asks(nothing, key); status != http.StatusNotFound {
			c.t.Errorf("API key %s: HTTP %d", id, status)
		}
	}
	for _, key := range c.dead {
		if status := c.asks(nothing, key); status != http.StatusUnauthorized {
			c.t.Errorf("a revoked API key: HTTP %d", status)
		}
	}
	for digest, content := range c.artifacts {
		if status, body := c.request(c.t.Context(), http.MethodGet, "/agent/artifacts/"+digest, c.key, nil); status != http.StatusOK || !bytes.Equal(body, content) {
			c.t.Errorf("artifact %s of %d bytes: HTTP %d, %d bytes", digest, len(content), status, len(body))
		}
	}
	clear(c.artifacts) // each is a request; fsck reads them all
	if c.t.Failed() {
		c.t.Fatalf("after cut %d", c.cuts)
	}
}

// checkExecutors: credentials are whole, none was lost, none came back. What was
// cut off has become one thing or the other by now.
func (c *cuts) checkExecutors() {
	c.t.Helper()
	raw, ok := c.writ(c.t.Context(), "admin", "executor", "list", "--json")
	var list []struct {
		Name, NKey string
		Revoked    *time.Time
	}
	if err := json.Unmarshal(raw, &list); !ok || err != nil {
		c.t.Fatalf("executors: %v: %s", err, raw)
	}
	now := make(map[string]string)
	for _, x := range list {
		if now[x.Name] = x.NKey; x.Revoked != nil {
			now[x.Name] = ""
		}
	}
	for name, public := range c.executors {
		if got, there := now[name]; !there || got != public {
			c.t.Errorf("executor %s has key %q (%v), was acknowledged with %q", name, got, there, public)
		}
	}
	c.executors = now
}

// checkKeys: the log has its origin, and its key set is that of the last change.
func (c *cuts) checkKeys() {
	c.t.Helper()
	raw, ok := c.writ(c.t.Context(), "admin", "keys", "list", "--json", "--url", c.url)
	var set struct {
		Origin string
		Keys   []struct {
			KID           string
			Role          intents.Role
			Revoked, Here bool
		}
	}
	if err := json.Unmarshal(raw, &set); !ok || err != nil {
		c.t.Fatalf("keys: %v: %s", err, raw)
	}
	if c.origin == "" {
		c.origin = set.Origin
	}
	if set.Origin != c.origin {
		c.t.Errorf("the log %s has become %s", c.origin, set.Origin)
	}
	inForce, revoked := []string{}, []string{}
	for _, k := range set.Keys {
		if k.Revoked {
			revoked = append(revoked, k.KID)
		} else if k.Here {
			inForce = append(inForce, k.KID)
		}
	}
	for _, kid := range c.planner {
		if !slices.Contains(inForce, kid) {
			c.t.Errorf("key %s is not in force, or its private half is lost", kid)
		}
	}
	for _, kid := range c.revoked {
		if !slices.Contains(revoked, kid) {
			c.t.Errorf("key %s is not revoked any more", kid)
		}
	}
	c.noEmptyKeys()
}

// noEmptyKeys: what is in force is read at the start; what is not, must be whole too.
func (c *cuts) noEmptyKeys() {
	c.t.Helper()
	err := filepath.WalkDir(filepath.Join(c.dir, "keys"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".pem") {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() == 0 {
			return errors.Join(err, errors.New(path+" is empty"))
		}
		return nil
	})
	if err != nil {
		c.t.Error(err)
	}
}

func (c *cuts) asks(path, key string) int {
	status, _ := c.request(c.t.Context(), http.MethodGet, path, key, nil)
	return status
}
