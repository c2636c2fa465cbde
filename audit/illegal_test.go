package audit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/audit"
)

var updateIllegal = flag.Bool("update-illegal", false, "write what is not in testdata/illegal, and its index anew")

// illegalDir has the journals of dishonest routers, and of honest ones, as bundles:
// NAME.jsonl.gz, with trust.json and index.json next to them. The blobs that
// follow the first line of each are in blobs.jsonl.gz, once.
const illegalDir = "testdata/illegal"

// illegalIndex names the journals. Programs in any language can be tested with it.
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
	Finding  string `json:"finding"` // part of the finding of the Go auditor
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
			if !found {
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
		if !slices.Contains(strings.Split(string(spec), "\n"), "- "+rule) {
			t.Errorf("docs/spec/state.md does not have the rule of %s: %s", j.Name, rule)
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
	raw := unzipped(t, illegalPath(name))
	if _, blobs := apart(raw); len(blobs) > 0 {
		return raw
	}
	head, rest, _ := bytes.Cut(raw, []byte("\n"))
	illegalBlobs.once.Do(func() { illegalBlobs.raw = unzipped(t, illegalPath("blobs")) })
	return slices.Concat(head, []byte("\n"), illegalBlobs.raw, rest)
}

// illegalBlobs are those that most bundles share.
var illegalBlobs struct {
	once sync.Once
	raw  []byte
}

func illegalPath(name string) string { return filepath.Join(illegalDir, name+".jsonl.gz") }

// apart separates the blobs from a bundle.
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

// writeIllegal writes the index again, and the missing journals. A journal that was
// written once stays until the format changes: then remove all, and write them again.
func writeIllegal(t *testing.T) {
	t.Helper()
	index := illegalIndex{
		Doc:    "Journals as bundles (docs/spec/ledger.md), without the blobs that stand behind the first line. The honest ones verify, each illegal one breaks its rule of docs/spec/state.md at its position.",
		Honest: slices.Sorted(maps.Keys(scenes())),
	}
	if err := os.MkdirAll(illegalDir, 0o755); err != nil {
		t.Fatal(err)
	}
	before := map[string]int64{}
	if exists(filepath.Join(illegalDir, "index.json")) {
		for _, j := range readIllegal(t).Illegal {
			before[j.Name] = j.Position
		}
	}
	for _, name := range index.Honest {
		if exists(illegalPath(name)) {
			continue
		}
		t.Run("write "+name, func(t *testing.T) {
			d := play(t, name)
			d.legally(name)
			d.write(name)
			raw, err := json.MarshalIndent(d.trust(), "", "  ")
			d.Must(err)
			d.Must(os.WriteFile(filepath.Join(illegalDir, "trust.json"), append(raw, '\n'), 0o600))
		})
	}
	for _, m := range misdeeds {
		bad, known := before[m.name]
		if !known || !exists(illegalPath(m.name)) {
			t.Run("write "+m.name, func(t *testing.T) {
				d := play(t, m.scene)
				bad = m.do(d)
				d.write(m.name)
			})
		}
		index.Illegal = append(index.Illegal, illegalJournal{m.name, m.scene, m.rule, bad, m.finding})
	}
	raw, err := json.MarshalIndent(index, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(illegalDir, "index.json"), append(raw, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// write writes the log's bundle, without its blobs where they are those of the others.
func (d *dishonest) write(name string) {
	d.Helper()
	bundle := d.bundle()
	rest, blobs := apart(bundle)
	head, behind, _ := bytes.Cut(rest, []byte("\n"))
	if bytes.Equal(slices.Concat(head, []byte("\n"), blobs, behind), bundle) { // else a blob comes later
		shared := illegalPath("blobs")
		if !exists(shared) {
			zipped(d, shared, blobs)
		}
		if bytes.Equal(unzipped(d, shared), blobs) {
			bundle = rest
		}
	}
	zipped(d, illegalPath(name), bundle)
}
