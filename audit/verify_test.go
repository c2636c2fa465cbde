package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// TestBundleVerifies: an export of the whole log verifies with nothing but the
// pinned root key, every decision is replayed the same, and both are complete.
func TestBundleVerifies(t *testing.T) {
	w := newWorld(t)
	w.live(40)
	bundle := w.export(w.Journal, audit.Selection{})
	r := w.verify(bundle, audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || !r.Anchored || !r.Complete || r.Witnessed || r.FirstBad != nil || r.Withheld != 0 {
		t.Fatalf("%+v %v", r, r.FirstBad)
	}
	if r.Records != w.Journal.Next() || r.Intents < 300 || r.Replayed+r.Unreplayable != r.Intents {
		t.Fatalf("%+v", r)
	}
	// What cannot be decided again are refusals for the state of plans, and only these.
	want := map[string]int64{"refused for the state that plans or keys were in (TASK_SCOPE)": 10}
	if diff := cmp.Diff(want, r.Why); diff != "" {
		t.Error(diff)
	}
	t.Logf("%d records, %d intents, %d bytes: %.2f s with replay", r.Records, r.Intents, len(bundle), r.Seconds)

	alone := w.verify(bundle, audit.Options{})
	if !alone.OK || alone.Anchored || !strings.Contains(alone.String(), "unanchored") || !strings.Contains(alone.String(), "unwitnessed") {
		t.Errorf("without trust: %s", alone)
	}
}

// TestChangedBit: wherever a bit of a bundle is changed, verification fails
// and names the record that it is in.
func TestChangedBit(t *testing.T) {
	for _, c := range []struct{ plans, flips, ends int }{{4, 20, 6}, {60, 2, 1}} {
		w := newWorld(t)
		w.live(c.plans)
		changeBits(t, w, c.flips, c.ends)
	}
}

// TestNext: of a bundle that is not valid the report names the command that helps.
func TestNext(t *testing.T) {
	w := newWorld(t)
	w.live(1)
	bundle := w.export(w.Journal, audit.Selection{})
	other := audit.NewTrust(w.NewKey(intents.RoleOperator).VerificationKey())
	seen := w.trust()
	seen.Checkpoint = header(t, bundle).Last
	for name, c := range map[string]struct {
		bundle []byte
		o      audit.Options
		want   string
	}{
		"valid":       {bundle, audit.Options{Trust: w.trust()}, ""},
		"cut":         {bundle[:len(bundle)/2], audit.Options{}, "writ audit export --out FILE. "},
		"cut, pinned": {bundle[:len(bundle)/2], audit.Options{Trust: seen}, "--since-checkpoint CHECKPOINT. If that bundle is not valid either, writ audit fsck"},
		"another log": {bundle, audit.Options{Trust: &other}, "writ audit trust"},
	} {
		r := w.verify(c.bundle, c.o)
		if r.OK != (c.want == "") || !strings.Contains(r.Next, c.want) || !strings.Contains(r.String(), r.Next) || r.OK && r.Next != "" {
			t.Errorf("%s: %q of %+v", name, r.Next, r.FirstBad)
		}
	}
}

// lineAt returns a line of a bundle: where it ends, and its record or the next one.
type lineAt struct {
	end      int
	position int64
	record   bool
}

// changeBits changes a bit in so many places anywhere, and in so many of each of
// the first lines and of the last.
func changeBits(t *testing.T, w *world, anywhere, ends int) {
	t.Helper()
	bundle := w.export(w.Journal, audit.Selection{})
	var lines []lineAt
	next, at := int64(0), 0
	for line := range bytes.Lines(bundle) {
		at += len(line)
		record := bytes.HasPrefix(line, []byte(`{"record":`))
		lines = append(lines, lineAt{at, next, record})
		if record {
			next++
		}
	}
	t.Logf("%d records, %d bytes", next, len(bundle))
	random := rand.New(rand.NewPCG(3, 4))
	var flips []int
	for range anywhere {
		flips = append(flips, random.IntN(len(bundle)))
	}
	for i := range ends {
		flips = append(flips, len(bundle)-1-i)
		for _, l := range lines[:3] {
			flips = append(flips, l.end-1-i)
		}
	}
	for _, i := range flips {
		changed := bytes.Clone(bundle)
		changed[i] ^= 1 << random.IntN(8)
		in := lines[slices.IndexFunc(lines, func(l lineAt) bool { return i < l.end })]
		r, err := audit.Verify(t.Context(), bytes.NewReader(changed), audit.Options{Trust: w.trust()})
		switch {
		case errors.Is(err, audit.ErrMalformed) && i < lines[0].end:
		case err != nil:
			t.Fatalf("byte %d: %v", i, err)
		case r.OK || r.FirstBad == nil:
			t.Fatalf("byte %d (record %d) was changed and not found: %q", i, in.position, changed[max(i-40, 0):min(i+40, len(changed))])
		case in.record && r.FirstBad.Position != in.position:
			t.Fatalf("byte %d is in record %d, named is %v", i, in.position, r.FirstBad)
		}
	}
}

// TestForged: changes that a log's own operator can make, with every key but the root's
// or even that one, are found by an auditor who has pinned the root or a checkpoint.
func TestForged(t *testing.T) {
	w := newWorld(t)
	w.live(12)
	w.Want(w.Do(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "last"}}), intents.OK)
	records := w.Records()
	honest := w.export(w.Journal, audit.Selection{})
	pinned := w.trust()
	pinned.Checkpoint = header(t, honest).Last
	denied, allowed, key := int64(-1), int64(-1), ""
	for _, r := range records {
		if r.Kind != storage.KindIntent {
			continue
		}
		d := decision(t, r)
		if d.Code == intents.PolicyDenied {
			denied = r.Position
		}
		if d.Verdict == intents.Allow && d.Executor == "python" {
			allowed = r.Position
		}
		if key == "" {
			key = d.Key
		}
	}
	change := func(at int64, part string, change func(map[string]any)) slice {
		return w.rewritten(at, func(r *storage.Record) {
			var v map[string]any
			w.Must(json.Unmarshal(r.Parts[part], &v))
			change(v)
			raw, err := json.Marshal(v)
			w.Must(err)
			r.Parts[part] = raw
		})
	}
	old := records[allowed].At.Add(-time.Hour)
	for name, c := range map[string]struct {
		records slice
		at      int64
		reason  string
	}{
		"a refusal turned into permission": {w.permits(denied), denied, "replay: decided allow"},
		"a permission turned into a refusal": {change(allowed, storage.PartDecision, func(d map[string]any) {
			d["verdict"], d["code"] = "deny", "POLICY_DENIED"
		}), allowed, "replay: decided deny"},
		"another signer": {change(allowed, storage.PartInputs, func(f map[string]any) {
			f["signer"] = map[string]any{"kid": w.Planner.KID, "role": "planner"}
		}), allowed, "another signer"},
		"another intent": {w.rewritten(allowed, func(r *storage.Record) {
			r.Parts[storage.PartEnvelope] = records[allowed-4].Parts[storage.PartEnvelope]
		}), allowed, ""},
		"another payload": {change(allowed, storage.PartEnvelope, func(o map[string]any) {
			o["payload"] = strings.Replace(o["payload"].(string), "print(", "prin_(", 1)
		}), allowed, "signature does not match"},
		"backdated": {w.rewritten(allowed, func(r *storage.Record) { r.At = old }), allowed, "at another time than its record says"},
		"the idempotency key of another": {change(allowed, storage.PartDecision, func(d map[string]any) {
			d["key"] = key
		}), allowed, "the intents name another"},
		"a second outcome":  {change(allowed+1, storage.PartOutcome, func(o map[string]any) { o["of"] = records[1].Position }), allowed + 1, "no open intent"},
		"without its grant": {w.rewritten(allowed, func(r *storage.Record) { delete(r.Parts, storage.PartGrant) }), allowed, "another grant"},
	} {
		bundle := w.export(c.records, audit.Selection{})
		r := w.verify(bundle, audit.Options{Trust: w.trust(), Replay: true})
		if r.OK || r.FirstBad == nil || r.FirstBad.Position != c.at || !strings.Contains(r.FirstBad.Reason, c.reason) {
			t.Errorf("%s at %d: %v", name, c.at, r.FirstBad)
		}
		if r := w.verify(bundle, audit.Options{Trust: pinned}); r.OK {
			t.Errorf("%s: not found by who has an earlier checkpoint", name)
		}
	}

	// Twice: the last intent and its outcome once more, under the same key.
	twice := slice(w.Records())
	for _, r := range twice[len(twice)-2:] {
		r.Position += 2
		twice = append(twice, r)
	}
	again := w.verify(w.export(twice, audit.Selection{}), audit.Options{Trust: w.trust()})
	if again.OK || again.FirstBad.Position != int64(len(twice)-2) || !strings.Contains(again.FirstBad.Reason, "a second intent under the idempotency key") {
		t.Errorf("twice: %v", again.FirstBad)
	}

	// Cut short: fewer records under a checkpoint of their own.
	short := w.export(slice(records[:len(records)-5]), audit.Selection{})
	if r := w.verify(short, audit.Options{Trust: w.trust()}); !r.OK {
		t.Errorf("a shorter log is one: %v", r.FirstBad)
	}
	if r := w.verify(short, audit.Options{Trust: pinned}); r.OK || !strings.Contains(r.FirstBad.Reason, "cut short") {
		t.Errorf("cut short: %v", r.FirstBad)
	}
	for _, n := range []int{1, len(honest) / 2, len(honest) - 1, len(honest) - 80} {
		r, err := audit.Verify(t.Context(), bytes.NewReader(honest[:n]), audit.Options{Trust: w.trust()})
		if err == nil && r.OK {
			t.Errorf("the first %d bytes verify", n)
		}
	}

	// The same records, signed again by somebody with keys of his own.
	other := newWorld(t)
	other.live(12)
	forged := other.export(other.Journal, audit.Selection{})
	if r := w.verify(forged, audit.Options{}); !r.OK || r.Anchored {
		t.Errorf("on its own a forgery agrees with itself: %v", r.FirstBad)
	}
	if r := w.verify(forged, audit.Options{Trust: w.trust()}); r.OK || !strings.Contains(r.FirstBad.Reason, "another log") {
		t.Errorf("forged: %v", r.FirstBad)
	}
	renamed := bytes.ReplaceAll(forged, []byte(other.Origin), []byte(w.Origin))
	if r, err := audit.Verify(t.Context(), bytes.NewReader(renamed), audit.Options{Trust: w.trust()}); err == nil && r.OK {
		t.Error("a forgery under the pinned name verifies")
	}
}
