package audit_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/audit"
)

var updateIllegal = flag.Bool("update-illegal", false, "write testdata/illegal anew")

// illegalDir has the journals of dishonest routers, and of honest ones, as bundles:
// NAME.jsonl.gz, with trust.json and index.json beside them. The blobs that stand
// behind the first line of each are in blobs.jsonl.gz, once.
const illegalDir = "testdata/illegal"

// illegalIndex names the journals. Programs in any language can be held to it.
type illegalIndex struct {
	Doc    string   `json:"doc"`
	Honest []string `json:"honest"`
	// Illegal journals each begin as the honest one that they name, and break a rule
	// of docs/spec/state.md at a position.
	Illegal []illegalJournal `json:"illegal"`
}

type illegalJournal struct {
	Name     string `json:"name"`
	Honest   string `json:"honest"`
	Rule     string `json:"rule"`
	Position int64  `json:"position"`
	Finding  string `json:"finding"` // stands in what an auditor in Go says
	// Unmet: the auditor in Go does not find it, and has to.
	Unmet bool `json:"unmet,omitempty"`
}

// unmet are the misdeeds that the auditor does not find yet. Nothing may be added.
var unmet = map[string]bool{
	"claim-left-out": true, "plan-without-driver": true, "claim-of-old-epoch": true, "step-of-old-driver": true,
	"revision-while-executing": true, "revision-left-out": true, "steps-doubled": true, "steps-out-of-order": true,
	"input-from-later-step": true, "step-while-replanning": true, "closed-too-early": true, "closed-while-running": true,
	"closed-twice": true, "cancel-of-closed-plan": true, "claim-of-closed-plan": true, "revision-of-closed-plan": true,
	"step-of-closed-plan": true, "second-task-of-step": true, "step-skipped": true,
	"step-again":          true,
	"done-without-result": true,
}

// TestIllegalJournals: a router that holds every key, and signs, chains and proves
// all that it writes, cannot do what no state of the log allows. Each such journal
// fails where it breaks its rule, and the honest one that it began as verifies.
func TestIllegalJournals(t *testing.T) {
	if *updateIllegal {
		writeIllegal(t)
	}
	index := readIllegal(t)
	raw, err := os.ReadFile(filepath.Join(illegalDir, "trust.json"))
	if err != nil {
		t.Fatal(err)
	}
	trust, err := audit.ReadTrust(raw)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(t *testing.T, name string) audit.Report {
		t.Helper()
		r, err := audit.Verify(t.Context(), bytes.NewReader(illegalBundle(t, name)), audit.Options{Trust: trust, Replay: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, name := range index.Honest {
		t.Run(name, func(t *testing.T) {
			if r := verify(t, name); !r.OK || !r.Anchored || !r.Complete || r.Replayed == 0 || r.FirstBad != nil {
				t.Errorf("%v, %+v", r.FirstBad, r)
			}
		})
	}
	for _, j := range index.Illegal {
		t.Run(j.Name, func(t *testing.T) {
			r := verify(t, j.Name)
			found := !r.OK && r.FirstBad != nil && r.FirstBad.Position == j.Position && strings.Contains(r.FirstBad.Reason, j.Finding)
			switch {
			case j.Unmet && found:
				t.Error("it is found now: take it out of the list of unmet ones")
			case !j.Unmet && !found:
				t.Errorf("%v, want at %d: %s", r.FirstBad, j.Position, j.Finding)
			}
		})
	}
	spec, err := os.ReadFile("../docs/spec/state.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range index.Illegal {
		_, rule, _ := strings.Cut(j.Rule, ": ")
		if !slices.ContainsFunc(strings.Split(string(spec), "\n"), func(line string) bool {
			return strings.HasPrefix(line, "| "+rule+" |") && strings.Contains(line, "`"+j.Name+"`")
		}) {
			t.Errorf("docs/spec/state.md has no row for %s: %s", j.Name, rule)
		}
	}
	if len(index.Illegal) != len(misdeeds) || len(index.Honest) != len(scenes()) {
		t.Errorf("%d journals of %d misdeeds, %d of %d scenes: write them with -update-illegal", len(index.Illegal), len(misdeeds), len(index.Honest), len(scenes()))
	}
}

func readIllegal(t *testing.T) (index illegalIndex) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(illegalDir, "index.json"))
	if err == nil {
		err = json.Unmarshal(raw, &index)
	}
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// illegalBundle is a bundle of the directory, with its blobs.
func illegalBundle(t *testing.T, name string) []byte {
	t.Helper()
	head, rest, _ := bytes.Cut(unzipped(t, filepath.Join(illegalDir, name+".jsonl.gz")), []byte("\n"))
	return slices.Concat(head, []byte("\n"), unzipped(t, filepath.Join(illegalDir, "blobs.jsonl.gz")), rest)
}

// apart takes the blobs out of a bundle.
func apart(bundle []byte) (rest, blobs []byte) {
	for line := range bytes.Lines(bundle) {
		if bytes.HasPrefix(line, []byte(`{"blob":`)) {
			blobs = append(blobs, line...)
		} else {
			rest = append(rest, line...)
		}
	}
	return rest, blobs
}

// writeIllegal writes all journals anew, to the same bytes for the same records.
func writeIllegal(t *testing.T) {
	t.Helper()
	index := illegalIndex{
		Doc:    "Journals as bundles (docs/spec/ledger.md), without the blobs that stand behind the first line. The honest ones verify, each illegal one breaks its rule of docs/spec/state.md at its position.",
		Honest: slices.Sorted(maps.Keys(scenes())),
	}
	zipped := func(d *dishonest, name string, content []byte) {
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		d.Must(err)
		_, err = z.Write(content)
		d.Must(err)
		d.Must(z.Close())
		d.Must(os.WriteFile(filepath.Join(illegalDir, name+".jsonl.gz"), out.Bytes(), 0o600))
	}
	write := func(d *dishonest, name string) {
		rest, blobs := apart(d.bundle())
		zipped(d, name, rest)
		zipped(d, "blobs", blobs)
	}
	if err := os.RemoveAll(illegalDir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(illegalDir, 0o755); err != nil { //nolint:gosec // G301: testdata
		t.Fatal(err)
	}
	for _, name := range index.Honest {
		t.Run("write "+name, func(t *testing.T) {
			d := play(t, name)
			d.legally(name)
			write(d, name)
			raw, err := json.MarshalIndent(d.trust(), "", "  ")
			d.Must(err)
			d.Must(os.WriteFile(filepath.Join(illegalDir, "trust.json"), append(raw, '\n'), 0o600))
		})
	}
	for _, m := range misdeeds {
		t.Run("write "+m.name, func(t *testing.T) {
			d := play(t, m.scene)
			bad := m.do(d)
			write(d, m.name)
			index.Illegal = append(index.Illegal, illegalJournal{m.name, m.scene, m.rule, bad, m.finding, unmet[m.name]})
		})
	}
	raw, err := json.MarshalIndent(index, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(illegalDir, "index.json"), append(raw, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
