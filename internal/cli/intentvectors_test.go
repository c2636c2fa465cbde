package cli

import (
	"encoding/json"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/intentstest"
)

// TestVerifyVectors: `writ intent verify` says of every vector what the library
// says, and takes no file with a key that must not be admitted.
func TestVerifyVectors(t *testing.T) {
	set := intentstest.Keys(t)
	jwks := func(name string, more ...intents.JWK) string {
		s := set
		s.Keys = append(append([]intents.JWK(nil), set.Keys...), more...)
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return file(t, name, string(raw))
	}
	keys := jwks("jwks.json")
	for _, v := range intentstest.Vectors(t) {
		for _, bad := range v.Refused {
			got := call{args: []string{"intent", "verify", "--keys", jwks("bad.json", bad)}, stdin: string(v.Raw())}.run(t.Context())
			if got.code != ExitMalformed || got.out != "" {
				t.Errorf("%s: with the key in the file: exit %d: %s", v.Name, got.code, got.out)
			}
		}
		got := call{
			args:  []string{"intent", "verify", "-", "--json", "--keys", keys, "--at", v.Now.Format(time.RFC3339)},
			stdin: string(v.Raw()),
		}.run(t.Context())
		want := ExitNo
		if v.Expect == intents.OK {
			want = ExitOK
		}
		var said verdict
		if err := json.Unmarshal([]byte(got.out), &said); err != nil || got.code != want || got.err != "" {
			t.Errorf("%s: exit %d: %s %s %v", v.Name, got.code, got.out, got.err, err)
			continue
		}
		if said.Code != v.Expect || said.Valid != (v.Expect == intents.OK) || said.Valid && said.IntentID != v.IntentID {
			t.Errorf("%s: %+v, want %s %s", v.Name, said, v.Expect, v.IntentID)
		}
	}
}
