package sqlite_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// crashDir is set for the child that the crash test kills; crashRound keeps the
// commit IDs of its rounds apart.
const (
	crashDir   = "WRIT_TEST_CRASH_DIR"
	crashRound = "WRIT_TEST_CRASH_ROUND"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		os.Exit(writeUntilKilled(dir, os.Getenv(crashRound)))
	}
	os.Exit(m.Run())
}

const crashWriters = 24

// writeUntilKilled commits from many goroutines and says on stdout what was
// acknowledged: one line, one write, after the call returned.
func writeUntilKilled(dir, round string) int {
	ctx := context.Background()
	j, err := sqlite.OpenJournal(ctx, dir, sqlite.JournalOptions{OnFatal: func(err error) { panic(err) }})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var running sync.WaitGroup
	for w := range crashWriters {
		running.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%s-%d-%d", round, w, n)
				c := crashCommit(id, 1+n%4)
				r, err := j.Commit(ctx, c)
				if err != nil || r.Verdict != storage.Won {
					panic(fmt.Sprint(r, err))
				}
				fmt.Printf("commit %s %d %d\n", id, len(c.Entries), r.Positions[0])
				if n%3 == 2 {
					continue // stays open
				}
				p, err := j.Finish(ctx, r.Positions[0], 1, crashRecord(storage.KindOutcome, id, 0, 1), nil)
				if err != nil {
					panic(err)
				}
				fmt.Printf("finish %s %d %d\n", id, r.Positions[0], p)
			}
		})
	}
	running.Wait()
	return 0
}

// crashMark says in every record which commit it is of, so that a partial one shows.
type crashMark struct {
	ID string `json:"id"`
	I  int    `json:"i"`
	N  int    `json:"n"`
}

func crashRecord(kind storage.Kind, id string, i, n int) storage.Record {
	body, err := json.Marshal(crashMark{id, i, n})
	if err != nil {
		panic(err)
	}
	// Of different sizes, up to more than a page.
	pad := fmt.Sprintf("%q", strings.Repeat("x", 40<<(len(id)*(i+1)%10)))
	return storage.NewRecord(kind, time.UnixMilli(0), map[string]json.RawMessage{"mark": body, "pad": json.RawMessage(pad)})
}

func crashCommit(id string, n int) storage.Commit {
	c := storage.Commit{ID: id}
	for i := range n {
		e := storage.Entry{Record: crashRecord(storage.KindOrder, id, i, n), Holder: storage.Nobody, Of: storage.Nobody}
		if i == 0 {
			e.Take, e.Open, e.Key = true, true, crashKey(id)
		}
		c.Entries = append(c.Entries, e)
	}
	return c
}

func crashKey(id string) storage.Key { return storage.OrderKey("acme", "u", "crash", id) }

// acknowledged is what a killed child had said.
type acknowledged struct {
	commits  map[string]int64 // first position
	sizes    map[string]int
	outcomes map[int64]int64
}

func newAcknowledged() acknowledged {
	return acknowledged{make(map[string]int64), make(map[string]int), make(map[int64]int64)}
}

// note reads a line of writeUntilKilled: "commit ID records first" or "finish ID of outcome".
func (a acknowledged) note(line string) bool {
	var what, id string
	var x, y int64
	if _, err := fmt.Sscanf(line, "%s %s %d %d", &what, &id, &x, &y); err != nil {
		return false
	}
	switch what {
	case "commit":
		a.commits[id], a.sizes[id] = y, int(x)
	case "finish":
		a.outcomes[x] = y
	}
	return true
}

// TestKilledWriter kills a writer under load at random points and opens what it
// left, again and again in one directory.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	all := newAcknowledged()
	for round := range 6 {
		runUntilKilled(t, dir, round, random.IntN(1500), all)
		checkAfterCrash(t, dir, random, all)
	}
	t.Logf("%d commits, %d outcomes acknowledged", len(all.commits), len(all.outcomes))
}

func runUntilKilled(t *testing.T, dir string, round, lines int, all acknowledged) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir, fmt.Sprintf("%s=%d", crashRound, round))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		if seen++; seen == lines+1 {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		all.note(scan.Text()) // or it is the line that was being written
	}
	if err := child.Wait(); err == nil || seen <= lines {
		t.Fatalf("the writer ended by itself after %d lines: %v", seen, err)
	}
}

func checkAfterCrash(t *testing.T, dir string, random *rand.Rand, all acknowledged) {
	t.Helper()
	observed := int64(0)
	j := open(t, dir, sqlite.JournalOptions{Observer: func(e storage.Entry) {
		if e.Record.Position != observed {
			t.Errorf("observed position %d after %d", e.Record.Position, observed-1)
		}
		observed++
	}})
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	firsts := wholeCommits(t, j)
	for id, first := range all.commits {
		if got, ok := firsts[id]; !ok || got != first {
			t.Fatalf("commit %s was acknowledged at %d, is at %d (%v)", id, first, got, ok)
		}
		if h, found, err := j.Lookup(t.Context(), crashKey(id)); err != nil || !found || h.Position != first {
			t.Fatalf("the key of %s: %+v, %v, %v", id, h, found, err)
		}
	}
	for of, outcome := range all.outcomes {
		if h, err := j.Holder(t.Context(), of); err != nil || h.State != storage.StateDone || h.Outcome != outcome {
			t.Fatalf("order %d: %+v, %v; its outcome was acknowledged at %d", of, h, err, outcome)
		}
	}
	// A commit that is there wins again under its ID, acknowledged or not.
	before := j.Next()
	for id, first := range firsts {
		if random.IntN(50) != 0 {
			continue
		}
		r, err := j.Commit(t.Context(), crashCommit(id, 1))
		if err != nil || r.Verdict != storage.Won || r.Positions[0] != first {
			t.Fatalf("asked again for %s: %+v, %v", id, r, err)
		}
	}
	if j.Next() != before {
		t.Fatal("asking again wrote something")
	}
}

// wholeCommits walks the journal and returns where each commit begins, having
// checked that all its records are there, side by side.
func wholeCommits(t *testing.T, j *sqlite.Journal) map[string]int64 {
	t.Helper()
	firsts := make(map[string]int64)
	var open crashMark
	next := int64(0)
	for r, err := range j.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Position != next {
			t.Fatalf("position %d, want %d", r.Position, next)
		}
		next++
		var m crashMark
		if err := json.Unmarshal(r.Parts["mark"], &m); err != nil {
			t.Fatal(err)
		}
		whole := open.I+1 == open.N || open.ID == ""
		goesOn := m.ID == open.ID && m.I == open.I+1
		if r.Kind == storage.KindOrder && (m.I == 0) != whole || m.I > 0 && !goesOn || r.Kind == storage.KindOutcome && !whole {
			t.Fatalf("position %d has part %d/%d of %s after part %d/%d of %s", r.Position, m.I, m.N, m.ID, open.I, open.N, open.ID)
		}
		open = m
		if r.Kind == storage.KindOrder && m.I == 0 {
			firsts[m.ID] = r.Position
		}
	}
	if next != j.Next() || open.N > 0 && open.I+1 != open.N {
		t.Fatalf("the journal ends at %d (Next %d) with part %d/%d of %s", next, j.Next(), open.I, open.N, open.ID)
	}
	return firsts
}
