package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/journaltest"
	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
	"aob.dev/writ/storage/sqlite"
)

// opened is an open journal of a driver.
type opened interface {
	storage.Journal
	storage.Records
	Close() error
}

// openJournal opens the journal of a directory. Opened again after Close it must have the same
// records.
type openJournal func(t testing.TB, dir string, observe storage.Observer) opened

// TestJournal runs the suite for every driver.
func TestJournal(t *testing.T) {
	var mu sync.Mutex
	byDir := make(map[string]*journaltest.Journal)
	servers, accounts := natstest.Start(t, 3), make(map[string]string)
	for name, open := range map[string]openJournal{
		"memory": func(_ testing.TB, dir string, observe storage.Observer) opened {
			mu.Lock()
			defer mu.Unlock()
			if before, ok := byDir[dir]; ok {
				byDir[dir] = before.Reopen(observe)
			} else {
				byDir[dir] = journaltest.NewJournal(observe)
			}
			return byDir[dir]
		},
		"sqlite": func(t testing.TB, dir string, observe storage.Observer) opened {
			t.Helper()
			j, err := sqlite.OpenJournal(t.Context(), dir, sqlite.JournalOptions{
				Observer: observe, OnFatal: func(err error) { t.Errorf("fatal: %v", err) },
			})
			if err != nil {
				t.Fatal(err)
			}
			return j
		},
		"jetstream": func(t testing.TB, dir string, observe storage.Observer) opened {
			t.Helper()
			mu.Lock()
			account, before := accounts[dir]
			if !before {
				account = servers.Account()
				accounts[dir] = account
			}
			mu.Unlock()
			js := servers.Connect(t, account)
			ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
			defer cancel()
			if err := jetstream.Create(ctx, js, 3); err != nil {
				t.Fatal(err)
			}
			j, err := jetstream.Open(ctx, js, jetstream.Options{
				Instance: "r1", Observer: observe, OnFatal: func(err error) { t.Errorf("fatal: %v", err) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Lead(ctx, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			return j
		},
	} {
		t.Run(name, func(t *testing.T) { testJournal(t, open) })
	}
}

// testJournal checks every sentence of storage.Journal and storage.Records that
// can be seen from outside. Durability beyond Close needs a crash test per driver.
func testJournal(t *testing.T, open openJournal) {
	t.Helper()
	for name, test := range map[string]func(*harness){
		"CommitWins":                testCommitWins,
		"CommitSeveral":             testCommitSeveral,
		"OwnCommitWinsAgain":        testOwnCommitWinsAgain,
		"KeyLost":                   testKeyLost,
		"LostBeforeStale":           testLostBeforeStale,
		"LostNamesEntry":            testLostNamesEntry,
		"HolderGivesKeyOn":          testHolderGivesKeyOn,
		"OpenHolderKeepsKey":        testOpenHolderKeepsKey,
		"Stale":                     testStale,
		"LosersWriteNothing":        testLosersWriteNothing,
		"MalformedCommits":          testMalformedCommits,
		"OutcomeInSameCommit":       testOutcomeInSameCommit,
		"RefusalIsNoIntent":         testRefusalIsNoIntent,
		"Finish":                    testFinish,
		"FinishTouches":             testFinishWrites,
		"FirstOutcomeWins":          testFirstOutcomeWins,
		"Attempts":                  testAttempts,
		"HeldAndReleased":           testHeldAndReleased,
		"HeldEnds":                  testHeldEnds,
		"TransitionedIntentIsStale": testTransitionedIntentIsStale,
		"UnknownIntents":            testUnknownIntents,
		"OpenIntents":               testOpenIntents,
		"Get":                       testGet,
		"TimesAscend":               testTimesAscend,
		"Scan":                      testScan,
		"ScanEndsWhereItBegan":      testScanEndsWhereItBegan,
		"ObserverBeforeAnswer":      testObserverBeforeAnswer,
		"Reopen":                    testReopen,
		"ReopenKnowsCommits":        testReopenKnowsCommits,
		"KeysLast":                  testKeysLast,
		"OldLeaves":                 testOldLeaves,
		"CancelledBefore":           testCancelledBefore,
		"CancelledWait":             testCancelledWait,
		"OneKeyManyCallers":         testOneKeyManyCallers,
		"OneSubjectManyWriter":      testOneSubjectManyWriters,
		"ManyCallersGapFree":        testManyCallersGapFree,
		"OneOutcomeOfMany":          testOneOutcomeOfMany,
		"Closed":                    testClosed,
		"Erase":                     testErase,
		"EraseBesideWriters":        testEraseBesideWriters,
		"EraseTransient":            testEraseTransient,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &harness{T: t, open: open, dir: filepath.Join(t.TempDir(), "journal")}
			h.start()
			test(h)
			h.checkObserved()
		})
	}
}

// harness is one journal under test and everything its observer received.
type harness struct {
	*testing.T
	open openJournal
	dir  string
	opened

	during func(storage.Entry) // run by the observer; set while no call is under way

	mu       sync.Mutex // guards seen and commits
	recorded []storage.Entry
	commits  int
}

func (h *harness) start() {
	h.Helper()
	h.opened = h.open(h.T, h.dir, func(e storage.Entry) {
		if h.during != nil {
			h.during(e)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.recorded = append(h.recorded, e)
	})
	h.Cleanup(func() { _ = h.opened.Close() })
}

// reopen closes the journal, opens it again and returns the entries observed before.
func (h *harness) reopen() []storage.Entry {
	h.Helper()
	if err := h.opened.Close(); err != nil {
		h.Fatalf("close: %v", err)
	}
	before := h.observed()
	h.mu.Lock()
	h.recorded = nil
	h.mu.Unlock()
	h.start()
	return before
}

func (h *harness) observed() []storage.Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]storage.Entry(nil), h.recorded...)
}

// checkObserved holds after every test: the observer saw each record once, in order,
// and the stored records are the observed ones.
func (h *harness) checkObserved() {
	h.Helper()
	seen := h.observed()
	if int64(len(seen)) != h.Next() {
		h.Fatalf("observer saw %d records, Next is %d", len(seen), h.Next())
	}
	position := int64(0)
	for r, err := range h.Scan(h.Context(), 0) {
		if err != nil {
			return // a test that closed the journal
		}
		if r.Position != position || seen[position].Record.Position != position {
			h.Fatalf("record %d has position %d, observed as %d", position, r.Position, seen[position].Record.Position)
		}
		h.same(r, seen[position].Record)
		if seen[position].TargetPrevious {
			h.Fatalf("position %d was observed with OfPrevious", position)
		}
		position++
	}
}

func (h *harness) same(got, want any) {
	h.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		h.Fatalf("-want +got:\n%s", d)
	}
}

// commitID is fresh.
func (h *harness) commitID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commits++
	return fmt.Sprintf("commit-%d", h.commits)
}

func (h *harness) commit(entries ...storage.Entry) (storage.Result, error) {
	return h.Commit(h.Context(), storage.Commit{ID: h.commitID(), Entries: entries})
}

// wins commits and returns the position of the first entry.
func (h *harness) wins(entries ...storage.Entry) int64 {
	h.Helper()
	r, err := h.commit(entries...)
	if err != nil || r.Verdict != storage.Won || len(r.Positions) != len(entries) {
		h.Fatalf("commit = %+v, %v; want it won", r, err)
	}
	return r.Positions[0]
}

func (h *harness) verdict(want storage.Verdict, c storage.Commit) storage.Result {
	h.Helper()
	r, err := h.Commit(h.Context(), c)
	if err != nil || r.Verdict != want {
		h.Fatalf("commit = %+v, %v; want verdict %d", r, err, want)
	}
	return r
}

// finish ends an intent and returns the position of its outcome.
func (h *harness) finish(of int64, attempt int, writes ...storage.Subject) int64 {
	h.Helper()
	p, err := h.Finish(h.Context(), of, attempt, record(storage.KindOutcome, "x"), writes)
	if err != nil {
		h.Fatalf("finish of %d: %v", of, err)
	}
	return p
}

func (h *harness) finishFails(want error, of int64, attempt int) {
	h.Helper()
	if _, err := h.Finish(h.Context(), of, attempt, record(storage.KindOutcome, "x"), nil); !errors.Is(err, want) {
		h.Fatalf("finish of attempt %d of %d: %v; want %v", attempt, of, err, want)
	}
}

// take begins another attempt at an intent and returns its number.
func (h *harness) take(of int64) int {
	h.Helper()
	attempt, err := h.Take(h.Context(), of, record(storage.KindTakeover, "x"))
	if err != nil {
		h.Fatalf("take of %d: %v", of, err)
	}
	return attempt
}

func (h *harness) takeFails(want error, of int64) {
	h.Helper()
	if _, err := h.Take(h.Context(), of, record(storage.KindTakeover, "x")); !errors.Is(err, want) {
		h.Fatalf("take of %d: %v; want %v", of, err, want)
	}
}

// waits checks which intents are open, and at which attempt.
func (h *harness) waits(attempts map[int64]int) {
	h.Helper()
	var want []storage.OpenIntent
	for _, p := range slices.Sorted(maps.Keys(attempts)) {
		want = append(want, storage.OpenIntent{Position: p, Attempt: attempts[p]})
	}
	got, err := h.OpenIntents(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	h.same(got, want)
}

func (h *harness) get(position int64) storage.Record {
	h.Helper()
	r, err := h.Get(h.Context(), position)
	if err != nil {
		h.Fatalf("get %d: %v", position, err)
	}
	return r
}

func (h *harness) holds(position int64, want storage.Holder) {
	h.Helper()
	got, err := h.Holder(h.Context(), position)
	if err != nil {
		h.Fatalf("holder of %d: %v", position, err)
	}
	h.same(got, want)
}

var epoch = time.Date(2026, 11, 20, 10, 0, 0, 123_000_000, time.UTC)

// record has a part with its text.
func record(kind storage.Kind, text string) storage.Record {
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err) // a map of strings always marshals
	}
	return storage.NewRecord(kind, epoch, map[string]json.RawMessage{
		string(kind): body, storage.PartInputs: json.RawMessage(`{"n":1}`),
	})
}

func key(name string) storage.Key { return storage.NewIntentKeys(nil).Key("acme", "u", "test", name) }

// openIntent takes a key and waits for an outcome.
func openIntent(name string) storage.Entry { return keyed(name, intents.Allow) }

// keyed is an intent whose decision has the key that it takes.
func keyed(name string, v intents.Verdict) storage.Entry {
	return storage.Entry{Record: Telling(record(storage.KindIntent, name), key(name), v), Take: true, Key: key(name), Holder: storage.NoPosition, Open: v == intents.Allow, Target: storage.NoPosition}
}

// heldIntent takes a key and waits for approval.
func heldIntent(name string) storage.Entry {
	return keyed(name, intents.Hold)
}

// refusal takes nothing.
func refusal(name string, writes ...storage.Subject) storage.Entry {
	return storage.Entry{Record: record(storage.KindIntent, name), Holder: storage.NoPosition, Target: storage.NoPosition, Writes: writes}
}

func about(kind storage.Kind, of int64) storage.Entry {
	return storage.Entry{Record: record(kind, fmt.Sprint(of)), Target: of, Holder: storage.NoPosition}
}

func done(position, outcome int64) storage.Holder {
	return storage.Holder{Position: position, State: storage.StateDone, Outcome: outcome}
}

func waiting(position int64, s storage.State) storage.Holder {
	return storage.Holder{Position: position, State: s, Outcome: storage.NoPosition}
}
