package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPutsReportChanges: each command of an operator that puts something says what is new,
// which members changed from what to what, or that nothing did; and the same as JSON.
func TestPutsReportChanges(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, data)
	at := []string{"--url", s.url, "--data", data}
	older := filepath.Join(t.TempDir(), "older") // a copy, such as auditors have
	for _, args := range [][]string{{"admin", "backup", older + ".tar", "--keys", "--data", data, "--erasable", older + ".keys"}, {"admin", "restore", older + ".tar", "--data", older, "--erasable", older + ".keys"}} {
		if r := (call{args: args}).run(t.Context()); r.code != ExitOK {
			t.Fatalf("%v: %+v", args, r)
		}
	}
	if r := (call{args: []string{"tenant", "role", "put", "early", "--capability", "skills:read", "--url", s.url, "--data", older}}).run(t.Context()); r.code != ExitOK || !strings.HasPrefix(r.err, "it is in force. ") {
		t.Errorf("the copy does not have it: %+v", r)
	}
	const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for _, c := range []struct{ args, says, changes string }{
		{"tenant add acme", "created tenant acme, with the roles that each tenant has\n", ""},
		{"user put ben --role user --tenant acme", "created user ben of tenant acme: roles [\"user\"]\n", `[{"row":"user ben","to":{"user_id":"ben","roles":["user"]}}]`},
		{"user put ben --role user --tenant acme", "nothing changed: all of it was in force already\n", `[]`},
		{
			"user put ben --role user --role auditor --disabled --tenant acme", `user ben of tenant acme: disabled (none) → true` + "\n" + `user ben of tenant acme: roles ["user"] → ["user","auditor"]` + "\n",
			`[{"row":"user ben","member":"disabled","to":true},{"row":"user ben","member":"roles","from":["user"],"to":["user","auditor"]}]`,
		},
		{"tenant role put reader --capability skills:read", "created role reader of tenant default: capabilities [\"skills:read\"]\n", `[{"row":"role reader","to":{"role":"reader","capabilities":["skills:read"]}}]`},
		{"tenant data x.ours 1", "created data x.ours of tenant default: value 1\n", `[{"row":"data x.ours","to":{"value":1}}]`},
		{"tenant data x.ours 2", "data x.ours of tenant default: value 1 → 2\n", `[{"row":"data x.ours","member":"value","from":1,"to":2}]`},
		{"tenant data x.ours null", "data x.ours of tenant default: value 2 → null\n", `[{"row":"data x.ours","member":"value","from":2,"to":null}]`},
		{"skill approve feed --effect pure --digest " + digest, "created skill feed of tenant default: ", ""},
		{"skill approve feed --effect once --digest " + digest, `skill feed of tenant default: effect "pure" → "once"` + "\n", `[{"row":"skill feed","member":"effect","from":"pure","to":"once"}]`},
		{"skill revoke feed", "removed skill feed of tenant default\n", ""},
		{"apikey create app --user ben --role user --tenant acme", `created API key app of tenant acme: max_roles ["user"], user_id "ben"`, ""},
		{"apikey revoke app --tenant acme", "API key app of tenant acme: revoked (none) → true\n", `[{"row":"API key app","member":"revoked","to":true}]`},
		{"policy push ../../policies/writ --revision 4", "policy: revision 0 → 4\n", ""},
		{"admin keys rotate gateway", `: not_after (none) → "20`, ""},
		{"admin keys rotate gateway", "created gateway key ", ""},
	} {
		args := append(strings.Fields(c.args), at...)
		if c.changes != "" {
			args = append(args, "--json")
		}
		got := call{args: args}.run(t.Context())
		if got.code != ExitOK {
			t.Errorf("%s: %+v", c.args, got)
			continue
		}
		if c.changes == "" {
			if !strings.Contains(got.err, c.says) {
				t.Errorf("%s: %q does not say %q", c.args, got.err, c.says)
			}
			continue
		}
		var p struct{ Changes json.RawMessage }
		var changes []change
		if err := json.Unmarshal([]byte(got.out), &p); err != nil || json.Unmarshal(p.Changes, &changes) != nil {
			t.Errorf("%s: %v in %s", c.args, err, got.out)
		}
		if d := cmp.Diff(values(t, c.changes), values(t, string(p.Changes))); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, d)
		}
		for i := range changes {
			changes[i].From, changes[i].To = compact(t, changes[i].From), compact(t, changes[i].To)
		}
		if text := (put{tenant: tenantIn(c.args), Changes: &changes}).text(); text != c.says {
			t.Errorf("%s: %q, want %q", c.args, text, c.says)
		}
	}
	if r := s.stop(); r.code != ExitOK {
		t.Errorf("%+v", r)
	}
}

func tenantIn(args string) string {
	if strings.HasSuffix(args, "--tenant acme") {
		return "acme"
	}
	return "default"
}

func compact(t *testing.T, doc json.RawMessage) json.RawMessage {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, doc); doc != nil && err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func values(t *testing.T, doc string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	return v
}
