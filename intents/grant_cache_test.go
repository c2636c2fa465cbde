package intents

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestGrantsVectors: the cache changes no answer, in any order of the
// vectors, though they share tokens and differ in what is known about keys.
func TestGrantsVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	var grants Grants
	keys := ring(vectorKeys()...)
	for range 3 {
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var v vector
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			if v.Intent == nil {
				continue
			}
			now, err := time.Parse(time.RFC3339, v.Now)
			if err != nil {
				t.Fatal(err)
			}
			id, err := verifyRaw(v.Intent, Verifier{Keys: keys, Origin: vectorOrigin, Now: now, Grants: &grants})
			if CodeOf(err) != v.Expect || err == nil && id != v.IntentID {
				t.Errorf("%s: %v, want %s", v.Name, err, v.Expect)
			}
		}
	}
	if len(grants.rows) == 0 {
		t.Error("nothing was remembered")
	}
}

func TestGrantsAskTheKeyEachTime(t *testing.T) {
	var grants Grants
	token := vectorGrant(unchanged)
	keys := ring(vectorKeys()...)
	var envelopes verifiedGrant // what an envelope knows of its grant, once it was opened
	open := func() (*Grant, error) {
		row, err := grants.open(token, vectorOrigin, keys, vectorNow, verifiedGrant{})
		if envelopes.grant != nil {
			if _, again := (*Grants)(nil).open(token, vectorOrigin, keys, vectorNow, envelopes); cmp.Diff(err, again) != "" {
				t.Errorf("looked up: %v, known to the envelope: %v", err, again)
			}
		}
		if err == nil {
			envelopes = row
		}
		return row.grant, err
	}
	want, err := OpenGrant(token, vectorOrigin, keys, vectorNow)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("grant (-opened +remembered):\n%s", diff)
		}
	}
	whole := keys[vGateway.KID]
	for name, change := range map[string]func(*Key){
		"another role":       func(k *Key) { k.Role = RoleManager },
		"past its end":       func(k *Key) { k.NotAfter = vectorNow.Add(-time.Second) },
		"another public key": func(k *Key) { k.Public = vManager.Public() },
	} {
		k := whole
		change(&k)
		keys = maps.Clone(keys)
		keys[vGateway.KID] = k
		if _, err := open(); CodeOf(err) != GrantInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	delete(keys, vGateway.KID)
	_, err = open()
	if _, unremembered := OpenGrant(token, vectorOrigin, keys, vectorNow); cmp.Diff(unremembered, err) != "" {
		t.Errorf("no key: %v, want %v", err, unremembered)
	}
}

func TestGrantsKeepGatewaysOnly(t *testing.T) {
	var grants Grants
	if _, err := grants.open(grantBy(vManager, TypGrant, unchanged), vectorOrigin, ring(vectorKeys()...), vectorNow, verifiedGrant{}); CodeOf(err) != GrantInvalid {
		t.Fatal(err)
	}
	if len(grants.rows) != 0 {
		t.Error("a manager's grant is remembered")
	}
}

func TestGrantsAreBounded(t *testing.T) {
	var grants Grants
	for i := range MaxGrants + 10 {
		grants.put(fmt.Sprint(i), verifiedGrant{})
	}
	if len(grants.rows) != 10 {
		t.Errorf("%d rows", len(grants.rows))
	}
}
