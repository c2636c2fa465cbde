package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/audit"
)

// TestAudit: a bundle is exported beside the running process, taken to an empty
// directory with the trust file, and verified there; a changed one is refused.
func TestAudit(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, data)
	key, err := os.ReadFile(filepath.Join(data, "keys", "api_key"))
	if err != nil {
		t.Fatal(err)
	}
	_ = writ(t, "run", "--url", s.url, "--key", strings.TrimSpace(string(key)), "Do something that nobody can")
	empty := t.TempDir()
	bundle, trust := filepath.Join(empty, "b.jsonl"), filepath.Join(empty, "trust.json")
	exported := writ(t, "audit", "export", "--data", data, "--out", bundle, "--json")
	var done audit.Exported
	if err := json.Unmarshal([]byte(exported.out), &done); err != nil || exported.code != 0 || done.Records == 0 {
		t.Fatalf("%+v %v", exported, err)
	}
	pinned := writ(t, "audit", "trust", "--data", data)
	if err := os.WriteFile(trust, []byte(pinned.out), 0o600); err != nil || pinned.code != 0 {
		t.Fatal(err, pinned)
	}
	if r := s.stop(); r.code != 0 {
		t.Fatalf("up: %+v", r)
	}
	if err := os.Rename(data, data+".gone"); err != nil { // nothing but the two files is left
		t.Fatal(err)
	}

	for _, command := range []string{"verify", "replay"} {
		r := writ(t, "audit", command, bundle, "--trust", trust, "--json")
		var report audit.Report
		if err := json.Unmarshal([]byte(r.out), &report); err != nil || r.code != 0 || !report.OK || !report.Anchored || report.Records != done.Records || r.err != "" {
			t.Fatalf("%s: %+v %v", command, r, err)
		}
		for _, name := range []string{"ok", "anchored", "witnessed", "complete", "records", "withheld", "first_bad", "unreplayable", "seconds"} {
			if !strings.Contains(r.out, `"`+name+`": `) {
				t.Errorf("%s: %s is missing", command, name)
			}
		}
	}
	if r := writ(t, "audit", "verify", bundle); r.code != 0 || !strings.Contains(r.out, "valid: ") || !strings.Contains(r.out, "unanchored: ") {
		t.Errorf("%+v", r)
	}
	raw, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(raw) // to memory
	_ = z.Close()
	if r := (call{args: []string{"audit", "verify", "-"}, stdin: zipped.String()}).run(t.Context()); r.code != 0 {
		t.Errorf("gzip on standard input: %+v", r)
	}
	i := bytes.LastIndex(raw, []byte(`"salt":"`)) + 12
	raw[i] ^= 1
	changed := file(t, "changed", string(raw))
	if r := writ(t, "audit", "verify", changed, "--trust", trust); r.code != ExitNo || !strings.Contains(r.out, "first bad: record ") {
		t.Errorf("changed: %+v", r)
	}
	for name, c := range map[string][]string{
		"no bundle":      {"audit", "verify", trust},
		"no file":        {"audit", "verify", filepath.Join(empty, "none")},
		"no trust":       {"audit", "verify", bundle, "--trust", bundle},
		"no data":        {"audit", "export", "--data", filepath.Join(empty, "none")},
		"no policy tree": {"audit", "replay", bundle, "--policy", empty},
	} {
		if r := writ(t, c...); r.code != ExitMalformed || r.out != "" || r.err == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := writ(t, "audit", "export", "--since", "yesterday"); r.code != ExitUsage {
		t.Errorf("--since: %+v", r)
	}
}

// TestAuditReads: tail lists records, show opens one order, prove proves it.
func TestAuditReads(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if r := start(t, data).stop(); r.code != 0 {
		t.Fatalf("up: %+v", r)
	}
	var order audit.Shown
	for line := range strings.Lines(writ(t, "audit", "tail", "--data", data, "--type", "admin.put", "--json").out) {
		if err := json.Unmarshal([]byte(line), &order); err != nil {
			t.Fatal(err)
		}
	}
	if order.IntentID == "" || order.Type != "admin.put" || order.Tenant != "system" {
		t.Fatalf("tail: %+v", order)
	}
	var shown []audit.Shown
	if err := json.Unmarshal([]byte(writ(t, "audit", "show", order.IntentID, "--data", data, "--json").out), &shown); err != nil || len(shown) != 2 {
		t.Fatalf("show: %+v %v", shown, err)
	}
	if text := writ(t, "audit", "show", order.IntentID, "--data", data); text.code != 0 || !strings.Contains(text.out, `"type": "admin.put"`) {
		t.Errorf("show: %+v", text)
	}
	var proof audit.Proof
	r := writ(t, "audit", "prove", order.IntentID, "--data", data)
	if err := json.Unmarshal([]byte(r.out), &proof); err != nil || r.code != 0 || proof.Receipt == "" {
		t.Fatalf("prove: %+v %v", r, err)
	}
	trust, err := audit.ReadTrust([]byte(writ(t, "audit", "trust", "--data", data).out))
	if err != nil {
		t.Fatal(err)
	}
	if err := proof.Check(*trust); err != nil {
		t.Error(err)
	}
	if r := writ(t, "audit", "show", "sha256:0", "--data", data); r.code != ExitNo {
		t.Errorf("an unknown order: %+v", r)
	}
	auditSearches(t, data, order)
	var h audit.Health
	r = writ(t, "audit", "fsck", "--data", data, "--json")
	if err := json.Unmarshal([]byte(r.out), &h); err != nil || r.code != 0 || !h.OK || !h.Compared || h.Records < 3 || r.err != "" {
		t.Errorf("fsck: %+v %v", r, err)
	}
	if err := os.Remove(filepath.Join(data, "ledger", "checkpoint")); err != nil {
		t.Fatal(err)
	}
	if r := writ(t, "audit", "fsck", "--data", data); r.code != ExitNo || !strings.HasPrefix(r.out, "NOT SOUND: ") {
		t.Errorf("fsck without checkpoint: %+v", r)
	}
}

// auditSearches: every filter finds the order, and leaves it out when it is
// asked for something else.
func auditSearches(t *testing.T, data string, order audit.Shown) {
	t.Helper()
	for _, c := range []struct{ right, wrong []string }{
		{[]string{order.IntentID}, []string{"sha256:0000"}},
		{[]string{"API_KEY", "max_roles"}, []string{"api_key", "nowhere"}},
		{[]string{"--user", "local"}, []string{"--user", "ana"}},
		{[]string{"--tenant", "system"}, []string{"--tenant", "default"}},
		{[]string{"--kind", "order"}, []string{"--kind", "release"}},
		{[]string{"--code", "OK"}, []string{"--code", "POLICY_DENIED"}},
		{[]string{"--type", "admin.put"}, []string{"--type", "plan"}},
		{[]string{"--since", "1h"}, []string{"--until", "1h"}},
		{[]string{"--limit", "50"}, []string{"--plan", "p"}},
		{nil, []string{"--session", "s"}},
	} {
		r := writ(t, append([]string{"audit", "search", "--data", data, "--json"}, c.right...)...)
		if r.code != 0 || !strings.Contains(r.out, `"intent_id":"`+order.IntentID+`"`) {
			t.Errorf("%v: %+v", c.right, r)
		}
		if r := writ(t, append([]string{"audit", "search", "--data", data, "--json"}, c.wrong...)...); r.code != ExitNo || r.out != "" {
			t.Errorf("%v: %+v", c.wrong, r)
		}
	}
	if r := writ(t, "audit", "search", "--data", data, "--limit", "1"); r.code != 0 || strings.Count(r.out, "\n") != 1 {
		t.Errorf("--limit: %+v", r)
	}
	for _, bad := range [][]string{{"--limit", "0"}, {"--since", "yesterday"}} {
		if r := writ(t, append([]string{"audit", "search", "--data", data}, bad...)...); r.code != ExitUsage {
			t.Errorf("%v: %+v", bad, r)
		}
	}
}

func TestSinceTime(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{"7d": now.AddDate(0, 0, -7), "90m": now.Add(-90 * time.Minute), "2026-11-19T00:00:00Z": now.Add(-34 * time.Hour)} {
		got, err := sinceTime(text, now)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Error(text, diff, err)
		}
	}
	for _, text := range []string{"", "7", "-3h", "7days"} {
		if _, err := sinceTime(text, now); err == nil {
			t.Errorf("%q is a time", text)
		}
	}
}
