package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"aob.dev/writ/internal/testing/storagetest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// crashDir is set for the child that the crash test kills; crashRound keeps the
// commit IDs of its rounds distinct.
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

// writeUntilKilled writes as storagetest.Write.
func writeUntilKilled(dir, round string) int {
	ctx := context.Background()
	j, err := sqlite.OpenJournal(ctx, dir, sqlite.JournalOptions{OnFatal: func(err error) { panic(err) }})
	if err == nil {
		err = storagetest.Write(ctx, j, round, os.Stdout)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestKilledWriter kills a writer under load at random points and opens what it
// left, repeatedly in one directory.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	all := storagetest.NewPromises()
	for round := range 6 {
		runUntilKilled(t, dir, round, random.IntN(1500), all)
		checkAfterCrash(t, dir, random, all)
	}
	t.Logf("%d commits, %d outcomes acknowledged", len(all.Commits), len(all.Outcomes))
}

func runUntilKilled(t *testing.T, dir string, round, lines int, all *storagetest.Promises) {
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
		all.Note(scan.Text()) // or it is the line that was being written
	}
	if err := child.Wait(); err == nil || seen <= lines {
		t.Fatalf("the writer ended by itself after %d lines: %v", seen, err)
	}
}

func checkAfterCrash(t *testing.T, dir string, random *rand.Rand, all *storagetest.Promises) {
	t.Helper()
	all.Check(t, random, func(o storage.Observer) storagetest.Opened { return open(t, dir, sqlite.JournalOptions{Observer: o}) })
}
