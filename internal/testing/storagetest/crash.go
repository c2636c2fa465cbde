// Package storagetest has the suites that every driver of the storage contracts
// passes, as its own tests: a new driver is a row in the table of its suite.
package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// A crash test runs Write in a process of its own, reads its output, kills it, opens the journal
// that it left and checks it.

// writers is how many goroutines Write has.
const writers = 24

// Write commits from many goroutines, until the process is killed, and prints acknowledged commits:
// one line, one write, after the call returned. round separates the commit IDs of processes.
func Write(ctx context.Context, j storage.Journal, round string, out io.Writer) error {
	var running sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		running.Go(func() { errs <- writeOn(ctx, j, fmt.Sprintf("%s-%d", round, w), out) })
	}
	return <-errs // the process ends with the first
}

func writeOn(ctx context.Context, j storage.Journal, name string, out io.Writer) error {
	for n := 0; ; n++ {
		id := fmt.Sprintf("%s-%d", name, n)
		c := CrashCommit(id, 1+n%4)
		r, err := j.Commit(ctx, c)
		if err != nil || r.Verdict != storage.Won {
			return fmt.Errorf("commit %s: %+v, %w", id, r, err)
		}
		if _, err := fmt.Fprintf(out, "commit %s %d %d\n", id, len(c.Entries), r.Positions[0]); err != nil {
			return err
		}
		if n%3 == 2 {
			continue // stays open
		}
		p, err := j.Finish(ctx, r.Positions[0], 1, CrashRecord(storage.KindOutcome, id, 0, 1), nil)
		if err != nil {
			return fmt.Errorf("finish %s: %w", id, err)
		}
		if _, err := fmt.Fprintf(out, "finish %s %d %d\n", id, r.Positions[0], p); err != nil {
			return err
		}
	}
}

// crashMark names the commit in every record, so that a partial one is visible.
type crashMark struct {
	ID string `json:"id"`
	I  int    `json:"i"`
	N  int    `json:"n"`
}

// CrashRecord is record i of the n of a commit. That of an intent or an outcome can be erased.
func CrashRecord(kind storage.Kind, id string, i, n int) storage.Record {
	body, err := json.Marshal(crashMark{id, i, n})
	if err != nil {
		panic(err)
	}
	// Of different sizes, up to more than a page.
	pad := fmt.Sprintf("%q", strings.Repeat("x", 40<<(len(id)*(i+1)%10)))
	parts := map[string]json.RawMessage{"mark": body, append(storage.ErasableParts[kind], "pad")[0]: json.RawMessage(pad)}
	if kind == storage.KindIntent {
		parts[storage.PartSummary] = json.RawMessage(`{}`)
	}
	return storage.NewRecord(kind, time.UnixMilli(0), parts)
}

// Telling is a record whose decision has the key that an intent takes: of an open intent,
// unless the verdict is to hold it.
func Telling(r storage.Record, key storage.Key, v intents.Verdict) storage.Record {
	decision, err := json.Marshal(intents.Decision{IntentID: key.String(), Verdict: v, Executor: "skills", Key: key.String()})
	if err != nil {
		panic(err) // texts
	}
	parts := map[string]json.RawMessage{storage.PartDecision: decision}
	maps.Copy(parts, r.Parts)
	return storage.NewRecord(r.Kind, r.At, parts)
}

// CrashCommit has n records; the first is an open intent that takes a key.
func CrashCommit(id string, n int) storage.Commit {
	c := storage.Commit{ID: id}
	for i := range n {
		e := storage.Entry{Record: CrashRecord(storage.KindIntent, id, i, n), Holder: storage.NoPosition, Target: storage.NoPosition}
		if i == 0 {
			e.Take, e.Open, e.Key = true, true, CrashKey(id)
			e.Record = Telling(e.Record, e.Key, intents.Allow)
		}
		c.Entries = append(c.Entries, e)
	}
	return c
}

// CrashKey is that key.
func CrashKey(id string) storage.Key { return storage.NewIntentKeys(nil).Key("acme", "u", "crash", id) }

// Promises are the acknowledgements of killed writers. Safe for concurrent use, but for Check.
type Promises struct {
	mu       sync.Mutex
	Commits  map[string]int64 // first position
	Outcomes map[int64]int64
}

// NewPromises has none.
func NewPromises() *Promises {
	return &Promises{Commits: make(map[string]int64), Outcomes: make(map[int64]int64)}
}

// Note a line of Write: "commit ID records first" or "finish ID of outcome". It may be the
// one that was being written when the writer was killed: that is none.
func (p *Promises) Note(line string) bool {
	var what, id string
	var x, y int64
	if _, err := fmt.Sscanf(line, "%s %s %d %d", &what, &id, &x, &y); err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch what {
	case "commit":
		p.Commits[id] = y
	case "finish":
		p.Outcomes[x] = y
	}
	return true
}

// Len is how many there are.
func (p *Promises) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.Commits) + len(p.Outcomes)
}

// Opened is an open journal of a driver.
type Opened interface {
	storage.Journal
	storage.Records
	Close() error
}

// Check checks a journal that killed writers have left: each commit is whole, acknowledged ones
// exist, and existing ones win again. The journal is closed then.
func (p *Promises) Check(t testing.TB, random *rand.Rand, open func(storage.Observer) Opened) {
	t.Helper()
	observed := int64(0)
	j := open(func(e storage.Entry) {
		if e.Record.Position != observed {
			t.Errorf("observed position %d after %d", e.Record.Position, observed-1)
		}
		observed++
	})
	err := errors.Join(p.check(t.Context(), j, random), j.Close())
	if err != nil {
		t.Fatal(err)
	}
}

func (p *Promises) check(ctx context.Context, j Opened, random *rand.Rand) error {
	firsts, err := WholeCommits(ctx, j)
	if err != nil {
		return err
	}
	for id, first := range p.Commits {
		if got, ok := firsts[id]; !ok || got != first {
			return fmt.Errorf("commit %s was acknowledged at %d, is at %d (%v)", id, first, got, ok)
		}
		if h, found, err := j.Lookup(ctx, CrashKey(id)); err != nil || !found || h.Position != first {
			return fmt.Errorf("the key of %s: %+v, %v, %w", id, h, found, err)
		}
	}
	for of, outcome := range p.Outcomes {
		if h, err := j.Holder(ctx, of); err != nil || h.State != storage.StateDone || h.Outcome != outcome {
			return fmt.Errorf("intent %d: %+v, %w; its outcome was acknowledged at %d", of, h, err, outcome)
		}
	}
	// A commit that is there wins again under its ID, acknowledged or not.
	before := j.Next()
	for id, first := range firsts {
		if random.IntN(50) != 0 {
			continue
		}
		r, err := j.Commit(ctx, CrashCommit(id, 1))
		if r.Verdict == storage.Lost && r.Winner == first && before-first > storage.RememberCommits {
			continue // its ID is forgotten by now, and its key is its own
		}
		if err != nil || r.Verdict != storage.Won || r.Positions[0] != first {
			return fmt.Errorf("asked again for %s: %+v, %w", id, r, err)
		}
	}
	if j.Next() != before {
		return errors.New("asking again wrote something")
	}
	return nil
}

// WholeCommits walks the journal and returns where each commit begins, having
// checked that all its records are there, side by side.
func WholeCommits(ctx context.Context, j Opened) (map[string]int64, error) {
	firsts := make(map[string]int64)
	var open crashMark
	next := int64(0)
	for r, err := range j.Scan(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if r.Position != next {
			return nil, fmt.Errorf("position %d, want %d", r.Position, next)
		}
		next++
		var m crashMark
		if err := json.Unmarshal(r.Parts["mark"], &m); err != nil {
			return nil, err
		}
		whole := open.I+1 == open.N || open.ID == ""
		goesOn := m.ID == open.ID && m.I == open.I+1
		if r.Kind == storage.KindIntent && (m.I == 0) != whole || m.I > 0 && !goesOn || r.Kind == storage.KindOutcome && !whole {
			return nil, fmt.Errorf("position %d has part %d/%d of %s after part %d/%d of %s", r.Position, m.I, m.N, m.ID, open.I, open.N, open.ID)
		}
		open = m
		if r.Kind != storage.KindIntent || m.I > 0 {
			continue
		}
		if _, twice := firsts[m.ID]; twice {
			return nil, fmt.Errorf("commit %s is there twice, again at %d", m.ID, r.Position)
		}
		firsts[m.ID] = r.Position
	}
	if next != j.Next() || open.N > 0 && open.I+1 != open.N {
		return nil, fmt.Errorf("the journal ends at %d (Next %d) with part %d/%d of %s", next, j.Next(), open.I, open.N, open.ID)
	}
	return firsts, nil
}
