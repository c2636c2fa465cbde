package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
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
	var done audit.ExportReport
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
	if r := writ(t, "audit", "verify", bundle); r.code != ExitNo || !strings.Contains(r.err, "writ audit trust") || !strings.Contains(r.out, "valid: ") || !strings.Contains(r.out, "unanchored: ") {
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
	if r := (call{args: []string{"audit", "verify", "-", "--trust", trust}, stdin: zipped.String()}).run(t.Context()); r.code != 0 {
		t.Errorf("gzip on standard input: %+v", r)
	}
	i := bytes.LastIndex(raw, []byte(`"salt":"`)) + 12
	raw[i] ^= 1
	changed := file(t, "changed", string(raw))
	if r := writ(t, "audit", "verify", changed, "--trust", trust); r.code != ExitNo || !strings.Contains(r.out, "first bad: record ") {
		t.Errorf("changed: %+v", r)
	}
	for name, c := range map[string][]string{
		"no bundle": {"audit", "verify", trust},
		"no file":   {"audit", "verify", filepath.Join(empty, "none")},
		"no trust":  {"audit", "verify", bundle, "--trust", bundle},
		"no data":   {"audit", "export", "--data", filepath.Join(empty, "none")},
	} {
		if r := writ(t, c...); r.code != ExitMalformed || r.out != "" || r.err == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := writ(t, "audit", "export", "--since", "yesterday"); r.code != ExitUsage {
		t.Errorf("--since: %+v", r)
	}
}

// TestAuditReads: tail lists records, show opens one intent, prove proves it.
func TestAuditReads(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if r := start(t, data).stop(); r.code != 0 {
		t.Fatalf("up: %+v", r)
	}
	var intent audit.RecordView
	for line := range strings.Lines(writ(t, "audit", "tail", "--data", data, "--type", "admin.put", "--json").out) {
		if err := json.Unmarshal([]byte(line), &intent); err != nil {
			t.Fatal(err)
		}
	}
	if intent.IntentID == "" || intent.Type != "admin.put" || intent.Tenant != "system" {
		t.Fatalf("tail: %+v", intent)
	}
	var shown []audit.RecordView
	if err := json.Unmarshal([]byte(writ(t, "audit", "show", intent.IntentID, "--data", data, "--json").out), &shown); err != nil || len(shown) != 2 {
		t.Fatalf("show: %+v %v", shown, err)
	}
	if text := writ(t, "audit", "show", intent.IntentID, "--data", data); text.code != 0 || !strings.Contains(text.out, `"type": "admin.put"`) {
		t.Errorf("show: %+v", text)
	}
	var proof audit.Proof
	r := writ(t, "audit", "prove", intent.IntentID, "--data", data)
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
	proofsAreVerified(t, data, r.out, proof)
	if r := writ(t, "audit", "show", "sha256:"+strings.Repeat("0", 64), "--data", data); r.code != ExitNo {
		t.Errorf("an unknown intent: %+v", r)
	}
	auditSearches(t, data, intent)
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

// auditSearches: every filter finds the intent, and leaves it out when it is
// asked for something else.
func auditSearches(t *testing.T, data string, intent audit.RecordView) {
	t.Helper()
	for _, c := range []struct{ right, wrong []string }{
		{[]string{intent.IntentID}, []string{"sha256:0000"}},
		{[]string{"API_KEY", "max_roles"}, []string{"api_key", "nowhere"}},
		{[]string{"--user", "local"}, []string{"--user", "ana"}},
		{[]string{"--tenant", "system"}, []string{"--tenant", "default"}},
		{[]string{"--kind", "intent"}, []string{"--kind", "release"}},
		{[]string{"--code", "OK"}, []string{"--code", "POLICY_DENIED"}},
		{[]string{"--type", "admin.put"}, []string{"--type", "plan"}},
		{[]string{"--since", "1h"}, []string{"--until", "1h"}},
		{[]string{"--limit", "50"}, []string{"--plan", "p"}},
		{nil, []string{"--session", "s"}},
	} {
		r := writ(t, append([]string{"audit", "search", "--data", data, "--json"}, c.right...)...)
		if r.code != 0 || !strings.Contains(r.out, `"intent_id":"`+intent.IntentID+`"`) {
			t.Errorf("%v: %+v", c.right, r)
		}
		if r := writ(t, append([]string{"audit", "search", "--data", data, "--json"}, c.wrong...)...); r.code != ExitNo || r.out != "" {
			t.Errorf("%v: %+v", c.wrong, r)
		}
	}
	if r := writ(t, "audit", "search", "--data", data, "--limit", "1"); r.code != 0 || strings.Count(r.out, "\n") != 1 || !strings.Contains(r.err, "the first 1 of ") {
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

// proofsAreVerified: receipt verify reads what audit prove prints, whole, and with it what the
// interface gives; whatever is not so in it is found.
func proofsAreVerified(t *testing.T, data, proof string, p audit.Proof) {
	t.Helper()
	dir := t.TempDir()
	trust, keys := filepath.Join(dir, "trust.json"), filepath.Join(dir, "jwks.json")
	pinned := writ(t, "audit", "trust", "--data", data).out
	from, err := audit.ReadTrust([]byte(pinned))
	if err != nil {
		t.Fatal(err)
	}
	root, err := from.Root.ToKey()
	if err != nil {
		t.Fatal(err)
	}
	_, set, err := intents.OpenKeySet(p.KeySets[len(p.KeySets)-1], root.Public)
	if err != nil {
		t.Fatal(err)
	}
	jwks := intents.JWKS{Origin: p.Origin}
	for _, k := range set {
		jwks.Keys = append(jwks.Keys, k.ToJWK())
	}
	served, err := json.Marshal(jwks)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{trust: pinned, keys: string(served)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := func(change func(p *audit.Proof)) string {
		q := p
		q.Inclusion = slices.Clone(p.Inclusion)
		change(&q)
		raw, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	one, err := json.Marshal(map[string]any{"intent_id": p.IntentID, "receipt": p.Receipt, "inclusion": p.Inclusion[0]})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		in, flag, file string
		code           int
		says           string
	}{
		"whole":            {proof, "--trust", trust, ExitOK, "which is in the log"},
		"by keys":          {proof, "--keys", keys, ExitOK, "which is in the log"},
		"of the interface": {string(one), "--keys", keys, ExitOK, "which is in the log"},
		"receipt alone":    {p.Receipt, "--keys", keys, ExitOK, "no proof came along"},
		"alone, by trust":  {p.Receipt, "--trust", trust, ExitMalformed, ""},
		"no receipt":       {changed(func(p *audit.Proof) { p.Receipt = "" }), "--trust", trust, ExitNo, "no receipt"},
		"another intent":   {changed(func(p *audit.Proof) { p.IntentID = "sha256:0" }), "--trust", trust, ExitNo, "SIGNATURE_INVALID"},
		"other intent":     {changed(func(p *audit.Proof) { p.IntentID = "sha256:0" }), "--keys", keys, ExitNo, "SIGNATURE_INVALID"},
		"no inclusion":     {changed(func(p *audit.Proof) { p.Inclusion = nil }), "--trust", trust, ExitNo, "proves nothing"},
		"none, by keys":    {changed(func(p *audit.Proof) { p.Inclusion = nil }), "--keys", keys, ExitNo, "proves nothing"},
		"another record":   {changed(func(p *audit.Proof) { p.Inclusion[0] = p.Inclusion[1] }), "--trust", trust, ExitNo, "SIGNATURE_INVALID"},
		"another, by keys": {changed(func(p *audit.Proof) { p.Inclusion[0] = p.Inclusion[1] }), "--keys", keys, ExitNo, "SIGNATURE_INVALID"},
		"no key sets":      {changed(func(p *audit.Proof) { p.KeySets = p.KeySets[:0] }), "--trust", trust, ExitNo, "SIGNATURE_INVALID"},
		"a spoilt hash":    {changed(func(p *audit.Proof) { p.Inclusion[1].Hashes = nil }), "--trust", trust, ExitNo, "not in the log"},
	} {
		if r := (call{args: []string{"intent", "receipt", "verify", x.flag, x.file}, stdin: x.in}).run(t.Context()); r.code != x.code || !strings.Contains(r.out, x.says) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for _, wrong := range [][]string{{}, {"--keys", keys, "--trust", trust}} {
		if r := (call{args: append([]string{"intent", "receipt", "verify"}, wrong...), stdin: proof}).run(t.Context()); r.code != ExitUsage {
			t.Errorf("%v: %+v", wrong, r)
		}
	}
}
