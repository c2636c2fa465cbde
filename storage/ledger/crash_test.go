package ledger_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

// kills is how often the writer is killed.
const kills = 12

const childDir = "WRIT_LEDGER_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// child writes records and leaves until it is killed, and reports them on its output.
func child(dir string) error {
	ctx := context.Background()
	key, err := intents.ReadKey(filepath.Join(dir, "key"), intents.RoleLedger)
	if err != nil {
		return err
	}
	j, err := sqlite.OpenJournal(ctx, filepath.Join(dir, "journal"), sqlite.JournalOptions{})
	if err != nil {
		return err
	}
	l, err := ledger.Open(ctx, ledger.Config{
		Dir: filepath.Join(dir, "ledger"), Origin: "writ/test", Key: key, Secret: bytes.Repeat([]byte{7}, 32),
		Records: j, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	go func() { _ = l.Run(ctx) }()
	for n := int(j.Next()); ; n++ {
		if err := commit(ctx, j, "acme", n); err != nil {
			return err
		}
		l.Wake()
		fmt.Println(l.Size())
	}
}

// TestKilledLedgerWriter kills a writer again and again, each time a little after it
// has begun to append, and then finds exactly one leaf per record.
func TestKilledLedgerWriter(t *testing.T) {
	dir := t.TempDir()
	key := must[intents.Signer](t)(intents.GenerateSigner(intents.RoleLedger))
	if err := intents.WriteKey(filepath.Join(dir, "key"), key); err != nil {
		t.Fatal(err)
	}
	self := must[string](t)(os.Executable())
	random := rand.New(rand.NewPCG(1, 2))
	for range kills {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() {
			t.Fatalf("the writer wrote nothing: %s", &stderr)
		}
		began := must[int](t)(strconv.Atoi(lines.Text()))
		more := began + 1 + random.IntN(400) // leaves until the kill
		after := random.IntN(200)            // then records until the kill
		for lines.Scan() {
			if must[int](t)(strconv.Atoi(lines.Text())) < more {
				continue
			}
			if after--; after < 0 {
				break
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // its output before it died
			_ = lines.Text()
		}
		if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
			t.Fatalf("the writer ended by itself: %v %s", err, &stderr)
		}
	}
	j := must[*sqlite.Journal](t)(sqlite.OpenJournal(t.Context(), filepath.Join(dir, "journal"), sqlite.JournalOptions{}))
	defer func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}()
	w := newWorld(t, j)
	w.cfg.Dir, w.cfg.Key = filepath.Join(dir, "ledger"), key
	began := time.Now()
	w.start()
	w.published(j.Next())
	w.end()
	w.check(j, j.Next())
	if err := w.fsck(); err != nil {
		t.Fatal("fsck:", err)
	}
	t.Logf("%d records after %d kills; caught up in %s", j.Next(), kills, time.Since(began))
}
