package e2e

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/internal/failpoint"
)

// death is one way to die: at the n-th pass of a point, after an earlier death
// that left something for recovery where the point is in that.
type death struct {
	point failpoint.Point
	n     int
	after string // passes count when step 2 is about to act (chosen) or its skill server was called (acted)
	skill string // what step 2 of the plan calls
	first string // the death before, as WRIT_FAILPOINT has it
	erase bool   // the intents that the test signs are erased all the while
	held  bool   // step 2 waits for a person, who approves at once
	sick  bool   // the skill server fails from the start on, until writ has died
}

// From when on passes count.
const (
	chosen = "chosen"
	acted  = "acted"
)

// deaths are one for each point at least. The numbers take most of them to the
// middle of a plan; the start itself passes some of the points a few times.
var deaths = []death{
	{point: failpoint.GenesisKeys, n: 1},
	{point: failpoint.GenesisCommitted, n: 1},
	{point: failpoint.BlobReceived, n: 2},
	{point: failpoint.BlobRenamed, n: 3},
	{point: failpoint.BlobKept, n: 1},
	{point: failpoint.JournalOpening, n: 1},
	{point: failpoint.JournalReplayed, n: 1},
	{point: failpoint.JournalJudged, n: 20},
	{point: failpoint.JournalJudged, n: 1, after: acted},
	{point: failpoint.JournalRecords, n: 24},
	{point: failpoint.JournalCommits, n: 18},
	{point: failpoint.JournalDurable, n: 22},
	{point: failpoint.JournalDurable, n: 1},
	{point: failpoint.JournalDurable, n: 1, after: acted},
	{point: failpoint.JournalPublished, n: 26},
	{point: failpoint.JournalAnswered, n: 16},
	{point: failpoint.JournalCopied, n: 3},
	{point: failpoint.KeysMaking, n: 1},
	{point: failpoint.KeysMade, n: 1},
	{point: failpoint.KeysErasing, n: 2, erase: true},
	{point: failpoint.KeysErased, n: 3, erase: true},
	{point: failpoint.IntentDecided, n: 14},
	{point: failpoint.IntentDecided, n: 1, after: chosen},
	{point: failpoint.IntentCommitted, n: 6},
	{point: failpoint.IntentCommitted, n: 1, after: chosen},
	{point: failpoint.IntentCommitted, n: 1, after: chosen, skill: "parcel_label"},
	{point: failpoint.IntentTicketed, n: 1, after: chosen},
	{point: failpoint.IntentReported, n: 8},
	{point: failpoint.IntentReported, n: 1, after: acted},
	{point: failpoint.IntentReported, n: 1, after: acted, skill: "parcel_label"},
	{point: failpoint.IntentFinished, n: 9},
	{point: failpoint.BreakerChanged, n: 1, sick: true},
	{point: failpoint.StepFinished, n: 1},
	{point: failpoint.ErasureAccepted, n: 2, erase: true},
	{point: failpoint.ErasureBlobs, n: 2, erase: true},
	{point: failpoint.ErasureDone, n: 3, erase: true},
	{point: failpoint.TransientEnded, n: 1},
	{point: failpoint.HoldReleased, n: 1, held: true},
	{point: failpoint.RecoveryTaken, n: 1, skill: "parcel_label", first: "executor.done", after: acted},
	{point: failpoint.RecoveryEnded, n: 1, first: "executor.done", after: acted},
	{point: failpoint.ExecutorDone, n: 8},
	{point: failpoint.ExecutorDone, n: 1, after: acted},
	{point: failpoint.DocumentWritten, n: 12},
	{point: failpoint.DocumentDurable, n: 15},
	{point: failpoint.MemoryLocked, n: 2},
	{point: failpoint.MemoryWritten, n: 1},
	{point: failpoint.SessionWritten, n: 2},
	{point: failpoint.SessionWritten, n: 1, after: acted}, // the turn is in its session, its plan is not closed
	{point: failpoint.LedgerAdded, n: 5},
	{point: failpoint.LedgerIntegrated, n: 4},
	{point: failpoint.LedgerSigned, n: 3},
	{point: failpoint.RecorderDocuments, n: 5},
	{point: failpoint.RecorderDocuments, n: 6},
	{point: failpoint.RecorderIndex, n: 5},
	{point: failpoint.RecorderReached, n: 8},
}

// points are all that package failpoint names.
func points(t *testing.T) (all []failpoint.Point) {
	t.Helper()
	file, err := parser.ParseFile(gotoken.NewFileSet(), "../failpoint/failpoint.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if of, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := of.Type.(*ast.Ident); ok && typ.Name == "Point" {
				name, err := strconv.Unquote(of.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, failpoint.Point(name))
			}
		}
		return true
	})
	if len(all) < 40 {
		t.Fatalf("%d points are named", len(all))
	}
	return all
}

// TestFailpoints kills writ at every durable step that has a name, under load,
// starts it again, and finds that nothing acknowledged was lost, that no effect
// came twice or without a record before it, and that everything has come to an end.
func TestFailpoints(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/spec/journal.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points(t) {
		if !strings.Contains(string(page), "`"+string(p)+"`") {
			t.Errorf("docs/spec/journal.md does not say what a crash leaves at %s", p)
		}
		if !slices.ContainsFunc(deaths, func(d death) bool { return d.point == p }) && !slices.ContainsFunc(copyDeaths, func(d copyDeath) bool { return d.point == p }) && !slices.ContainsFunc(slices.Concat(eraseDeaths, noticeDeaths, streamDeaths), func(d death) bool { return d.point == p }) {
			t.Errorf("nobody dies at %s", p)
		}
	}
	exe := mortal(t)
	begun := beginLog(t, exe)
	for _, list := range lives() {
		t.Run(fmt.Sprintf("%s:%d%s", list[0].point, list[0].n, list[0].after), func(t *testing.T) {
			t.Parallel()
			l := newLoad(t, exe, begun, list[0])
			if first := list[0].first; first != "" {
				l.die(first)
			}
			for _, d := range list {
				l.die(fmt.Sprintf("%s:%d", d.point, d.n))
			}
			l.survive()
		})
	}
}

// lives are the deaths of one log each. Those that need nothing special come one after another in
// one log, since what is judged after the last of them has all of them in it; in a campaign each
// has a log of its own.
func lives() (all [][]death) {
	most := 5
	if os.Getenv("WRIT_CAMPAIGN") != "" {
		most = 1
	}
	var plain []death
	for _, d := range deaths {
		if genesis := strings.HasPrefix(string(d.point), "genesis."); genesis || d != (death{point: d.point, n: d.n}) {
			all = append(all, []death{d})
		} else {
			plain = append(plain, d)
		}
	}
	return slices.AppendSeq(all, slices.Chunk(plain, most))
}

// mortal is a writ that has failpoints. All tests share one.
func mortal(t *testing.T) (exe string) {
	t.Helper()
	exe, err := buildMortal()
	if err != nil {
		t.Fatalf("build with failpoints: %v", err)
	}
	return exe
}

// mortalDir holds it until the last test has ended.
var mortalDir string

var buildMortal = sync.OnceValues(func() (exe string, err error) {
	if mortalDir, err = os.MkdirTemp("", "mortal"); err != nil {
		return "", err
	}
	exe = filepath.Join(mortalDir, "writ")
	build := exec.CommandContext(context.Background(), "go", "build", "-ldflags", "-s -w -X aob.dev/writ/internal/failpoint.built=yes", "-o", exe, "aob.dev/writ/cmd/writ") // several tests wait for it
	// With the race detector, too: what the other tests have compiled.
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return exe, nil
})
