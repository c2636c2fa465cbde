package sqlite_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"aob.dev/writ/internal/testing/storagetest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// powerCuts is how many cuts are tried on one run of a journal.
const powerCuts = 100

// sector is what a disk writes whole or not at all, in bytes.
const sector = 512

// TestPowerCut runs a journal, cuts the power at random moments and opens what a
// disk may hold then: all that was synced, and of the rest any part, torn
// anywhere. Whatever was acknowledged by then is stored, and nothing by half.
func TestPowerCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "journal")
	disk := newTap(t, dir)
	writeUnderTap(t, dir, disk)
	log := disk.log
	t.Logf("%d actions, of them %d syncs", len(log), len(slices.DeleteFunc(slices.Clone(log), func(a action) bool { return a.verb != synced })))
	least, most := len(log), 0
	for n := range powerCuts {
		at := random.IntN(len(log) + 1)
		after := filepath.Join(t.TempDir(), "journal")
		left := cutPower(t, log[:at], after, random)
		acked := acknowledgedBy(t, log[:at])
		least, most = min(least, len(acked.Commits)), max(most, len(acked.Commits))
		checkAfterCrash(t, after, random, acked)
		if t.Failed() {
			t.Fatalf("cut %d, after action %d of %d: %s", n, at, len(log), left)
		}
	}
	if least == most {
		t.Errorf("every cut came after %d commits", least)
	}
}

// writeUnderTap has several callers write through a few openings, with all kinds
// of checkpoints, and notes their answers in the tap.
func writeUnderTap(t *testing.T, dir string, disk *tap) {
	t.Helper()
	const openings, writers, rounds = 3, 6, 12
	for o := range openings {
		j := open(t, dir, sqlite.JournalOptions{})
		var running sync.WaitGroup
		for w := range writers {
			running.Go(func() {
				for n := range rounds {
					if w == 0 && n%4 == 3 {
						j.RestartLog()
					}
					id := fmt.Sprintf("%d-%d-%d", o, w, n)
					c := storagetest.CrashCommit(id, 1+n%4)
					r, err := j.Commit(t.Context(), c)
					if err != nil || r.Verdict != storage.Won {
						t.Errorf("commit %s: %+v, %v", id, r, err)
						return
					}
					disk.tell(fmt.Sprintf("commit %s %d %d", id, len(c.Entries), r.Positions[0]))
					if n%3 == 2 {
						continue
					}
					p, err := j.Finish(t.Context(), r.Positions[0], 1, storagetest.CrashRecord(storage.KindOutcome, id, 0, 1), nil)
					if err != nil {
						t.Error(err)
						return
					}
					disk.tell(fmt.Sprintf("finish %s %d %d", id, r.Positions[0], p))
				}
			})
		}
		running.Wait()
		closeJournal(t, j)
	}
}

func acknowledgedBy(t *testing.T, log []action) *storagetest.Promises {
	t.Helper()
	all := storagetest.NewPromises()
	for _, a := range log {
		if a.verb == noted && !all.Note(a.event) {
			t.Fatalf("told %q", a.event)
		}
	}
	return all
}

// cutPower creates the files of a directory as a disk may have them when the power
// is cut after these actions, and returns what it did to those that were not synced.
func cutPower(t *testing.T, log []action, dir string, random *rand.Rand) (left string) {
	t.Helper()
	durable, names := covered(log)
	files := make(map[string][]byte)
	for i, a := range log {
		if a.verb == noted || a.verb == synced {
			continue
		}
		sure := i < durable[a.file]
		if a.verb == removed {
			sure = i < names
		}
		if !sure && random.IntN(3) == 0 {
			left += fmt.Sprintf(" %d lost;", i)
			continue
		}
		switch a.verb {
		case wrote:
			data := a.data
			if !sure && random.IntN(3) == 0 {
				data = tear(data, random)
				left += fmt.Sprintf(" %d torn;", i)
			}
			f := files[a.file]
			if end := int(a.at) + len(data); end > len(f) {
				f = append(f, make([]byte, end-len(f))...)
			}
			copy(f[a.at:], data)
			files[a.file] = f
		case cut:
			f := files[a.file]
			files[a.file] = append(f, make([]byte, max(0, int(a.at)-len(f)))...)[:a.at]
		case removed:
			delete(files, a.file)
		default:
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return left
}

// covered returns up to where the log is durable: by file what was written, and the
// names of the directory, which SQLite syncs with the first sync of a new file.
func covered(log []action) (files map[string]int, names int) {
	files = make(map[string]int)
	durable := make(map[string]bool)
	for _, a := range log {
		switch a.verb {
		case synced:
			files[a.file] = max(files[a.file], a.began)
			if !durable[a.file] {
				durable[a.file], names = true, a.began
			}
		case removed:
			delete(durable, a.file)
		default:
		}
	}
	return files, names
}

// tear returns what a cut in the middle of a write may leave of it: its beginning,
// or all of it with a sector that holds anything.
func tear(data []byte, random *rand.Rand) []byte {
	sectors := (len(data) + sector - 1) / sector
	if random.IntN(2) == 0 {
		return data[:min(len(data), random.IntN(sectors+1)*sector)]
	}
	torn := slices.Clone(data)
	from := random.IntN(sectors) * sector
	for i := from; i < min(from+sector, len(torn)); i++ {
		torn[i] = byte(random.Uint32())
	}
	return torn
}

// TestFailedSync: after a sync that failed nothing is acknowledged any more, the
// owner is notified that the process must exit, and the next one finds the journal
// as it was acknowledged.
func TestFailedSync(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	disk := newTap(t, dir)
	var fatal []error
	j := open(t, dir, sqlite.JournalOptions{OnFatal: func(err error) { fatal = append(fatal, err) }})
	commitOne(t, j, "before")
	disk.mu.Lock()
	disk.broken = func(file string) bool { return file == "journal.db-wal" }
	disk.mu.Unlock()
	if r, err := j.Commit(t.Context(), storagetest.CrashCommit("lost", 2)); err == nil || r.Verdict != storage.Unknown {
		t.Fatalf("commit = %+v, %v", r, err)
	}
	disk.mu.Lock()
	disk.broken = nil
	disk.mu.Unlock()
	if r, err := j.Commit(t.Context(), storagetest.CrashCommit("later", 1)); err == nil || r.Verdict != storage.Unknown {
		t.Fatalf("commit after a failed sync = %+v, %v", r, err)
	}
	if len(fatal) != 1 {
		t.Fatalf("OnFatal was called %d times", len(fatal))
	}
	after := filepath.Join(t.TempDir(), "journal")
	all := storagetest.NewPromises()
	all.Commits["before"] = 0
	random := rand.New(rand.NewPCG(1, 2))
	disk.mu.Lock() // a checkpoint may still be written
	log := slices.Clone(disk.log)
	disk.mu.Unlock()
	cutPower(t, log, after, random)
	checkAfterCrash(t, after, random, all)
	closeJournal(t, j)
}
