package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/cli"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// judge compares a machine's remains with the journal's guarantees.
func (l *load) judge() {
	l.t.Helper()
	allowed, next := l.journalWhole()
	for id, a := range l.accepted {
		if at, ok := allowed[id]; !ok || at != *a.Position {
			l.t.Errorf("intent %s was acknowledged at %d; the journal has it at %d (%v)", id, *a.Position, at, ok)
		}
	}
	for _, s := range depotSkills {
		ids := l.depot.ids(s.name)
		for _, id := range ids {
			if _, ok := allowed[id]; !ok {
				l.t.Errorf("%s was called for %q, which no record allows", s.name, id)
			}
		}
		slices.Sort(ids)
		if once := slices.Compact(slices.Clone(ids)); s.name == "parcel_send" && len(once) != len(ids) {
			l.t.Errorf("%s acted %d times for %d intents", s.name, len(ids), len(once))
		}
	}
	l.bundleVerifies(next)
	l.erased()
}

// journalWhole reads the journal: no gap, and one outcome for every intent that
// was allowed. It gives the positions of those, and how many records there are.
func (l *load) journalWhole() (allowed map[string]int64, next int64) {
	l.t.Helper()
	records, err := sqlite.OpenRecords(l.t.Context(), filepath.Join(l.dir, "journal"))
	if err != nil {
		l.t.Fatal(err)
	}
	defer records.Close()
	allowed = make(map[string]int64)
	open := make(map[int64]string)
	for rec, err := range records.Scan(l.t.Context(), 0) {
		if err != nil {
			l.t.Fatal(err)
		}
		if rec.Position != next {
			l.t.Fatalf("position %d comes after %d", rec.Position, next-1)
		}
		next++
		switch rec.Kind {
		case storage.KindIntent:
			s, err := state.ReadIntent(rec)
			if err != nil {
				l.t.Fatal(err)
			}
			if s.Decision.Verdict == intents.Deny {
				continue
			}
			if at, twice := allowed[s.Decision.IntentID]; twice {
				l.t.Errorf("intent %s was accepted at %d and at %d", s.Decision.IntentID, at, rec.Position)
			}
			allowed[s.Decision.IntentID], open[rec.Position] = rec.Position, s.Type
		case storage.KindOutcome:
			_, of, err := state.OutcomeOf(rec)
			if err != nil {
				l.t.Fatal(err)
			}
			if _, ok := open[of]; !ok {
				l.t.Errorf("record %d is an outcome of %d, which is not open", rec.Position, of)
			}
			delete(open, of)
		default:
		}
	}
	for at, typ := range open {
		l.t.Errorf("intent %d (%s) has no outcome", at, typ)
	}
	return allowed, next
}

// bundleVerifies exports everything and verifies it as an auditor would: as many
// leaves as records, each the commitment to its own.
func (l *load) bundleVerifies(records int64) {
	l.t.Helper()
	dir := l.t.TempDir()
	bundle, trust := filepath.Join(dir, "bundle"), filepath.Join(dir, "trust.json")
	run := func(args ...string) []byte {
		var out, errs bytes.Buffer
		if code := cli.Main(l.t.Context(), args, cli.IO{In: new(bytes.Buffer), Out: &out, Err: &errs, Env: func(string) string { return "" }}); code != cli.ExitOK {
			l.t.Fatalf("writ %v: exit %d: %s%s", args, code, &out, &errs)
		}
		return out.Bytes()
	}
	if err := os.WriteFile(trust, run("audit", "trust", "--data", l.dir), 0o600); err != nil {
		l.t.Fatal(err)
	}
	var done audit.ExportReport
	if err := json.Unmarshal(run("audit", "export", "--data", l.dir, "--out", bundle, "--json"), &done); err != nil {
		l.t.Fatal(err)
	}
	if done.Size != records || done.Pending != 0 {
		l.t.Errorf("the ledger has %d leaves and %d records wait; the journal has %d", done.Size, done.Pending, records)
	}
	var v struct {
		OK       bool  `json:"ok"`
		Anchored bool  `json:"anchored"`
		Records  int64 `json:"records"`
	}
	if err := json.Unmarshal(run("audit", "verify", bundle, "--trust", trust, "--json"), &v); err != nil {
		l.t.Fatal(err)
	}
	if !v.OK || !v.Anchored || v.Records != records {
		l.t.Errorf("the bundle: %+v, of %d records", v, records)
	}
}
