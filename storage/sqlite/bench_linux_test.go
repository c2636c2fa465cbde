package sqlite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/storagetest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// benchBytes is about the size of an intent with grant, decision and inputs.
const benchBytes = 2500

// BenchmarkCommit reports durable commits per second of so many callers, and as a
// ratio to bare fdatasync of one such record at a time, measured before and
// after in the same run. Run it with -benchtime=20000x or more.
func BenchmarkCommit(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 128} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			benchmark(b, callers, func(j *sqlite.Journal, n int) error {
				return expectWon(j.Commit(b.Context(), benchCommit(n)))
			})
		})
	}
}

// BenchmarkIntent is a commit and its outcome: two durable records, one after the other.
func BenchmarkIntent(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 128} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			benchmark(b, callers, func(j *sqlite.Journal, n int) error {
				r, err := j.Commit(b.Context(), benchCommit(n))
				if err := expectWon(r, err); err != nil {
					return err
				}
				_, err = j.Finish(b.Context(), r.Positions[0], 1, benchRecord(storage.KindOutcome), nil)
				return err
			})
		})
	}
}

func benchmark(b *testing.B, callers int, call func(*sqlite.Journal, int) error) {
	b.Helper()
	dir := b.TempDir()
	j := open(b, filepath.Join(dir, "journal"), sqlite.JournalOptions{FreeFloor: -1})
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
	})
	syncs := syncsPerSecond(b, dir)
	times := make([][]time.Duration, callers)
	var next atomic.Int64
	var running sync.WaitGroup
	b.ResetTimer()
	for i := range callers {
		running.Go(func() {
			for {
				n := int(next.Add(1))
				if n > b.N {
					return
				}
				start := time.Now()
				if err := call(j, n); err != nil {
					b.Error(err)
					return
				}
				times[i] = append(times[i], time.Since(start))
			}
		})
	}
	running.Wait()
	b.StopTimer()
	rate := float64(b.N) / b.Elapsed().Seconds()
	syncs = (syncs + syncsPerSecond(b, dir)) / 2
	all := slices.Concat(times...)
	slices.Sort(all)
	b.ReportMetric(rate, "per_s")
	b.ReportMetric(rate/syncs, "x_fdatasync")
	b.ReportMetric(syncs, "fdatasync_per_s")
	b.ReportMetric(all[len(all)*99/100].Seconds()*1000, "p99_ms")
}

// syncsPerSecond appends records to a file with one fdatasync each.
func syncsPerSecond(b *testing.B, dir string) float64 {
	b.Helper()
	const n = 500
	f, err := os.CreateTemp(dir, "bare")
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, benchBytes)
	start := time.Now()
	for range n {
		if _, err := f.Write(data); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
	}
	rate := n / time.Since(start).Seconds()
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return rate
}

var benchBody = json.RawMessage(fmt.Sprintf("%q", strings.Repeat("x", benchBytes)))

func benchRecord(kind storage.Kind) storage.Record {
	return storage.NewRecord(kind, time.UnixMilli(0), map[string]json.RawMessage{
		storage.ErasableParts[kind][0]: benchBody, string(kind): json.RawMessage(`{}`), storage.PartSummary: json.RawMessage(`{}`),
	})
}

func benchCommit(n int) storage.Commit {
	id := fmt.Sprint(n)
	return storage.Commit{ID: id, Entries: []storage.Entry{{
		Record: storagetest.Telling(benchRecord(storage.KindIntent), storagetest.CrashKey(id), intents.Allow), Take: true, Key: storagetest.CrashKey(id), Holder: storage.NoPosition, Open: true, Target: storage.NoPosition,
		Writes: []storage.Subject{storage.Subject("plan/acme/" + id)},
	}}}
}

func expectWon(r storage.Result, err error) error {
	if err != nil {
		return err
	}
	if r.Verdict != storage.Won {
		return fmt.Errorf("verdict %d", r.Verdict)
	}
	return nil
}

// BenchmarkOpen is what a start costs for each stored intent with outcome.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	ctx := context.Background()
	j := open(b, dir, sqlite.JournalOptions{FreeFloor: -1})
	const total, batch = 20_000, 100
	for n := 0; n < total; n += batch {
		var c storage.Commit
		for i := range batch {
			one := benchCommit(n + i)
			outcome := storage.Entry{Record: benchRecord(storage.KindOutcome), TargetPrevious: true, Holder: storage.NoPosition}
			c.ID, c.Entries = one.ID, append(c.Entries, one.Entries[0], outcome)
		}
		if err := expectWon(j.Commit(ctx, c)); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		j := open(b, dir, sqlite.JournalOptions{})
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/total, "µs/intent")
}
