package jetstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	nats "github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
)

// TestErasedOnAllServers: the keys that one router erases are removed from the files of all servers,
// for a running router and for one that starts later.
func TestErasedOnAllServers(t *testing.T) {
	c := newCell(t)
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	open := func(name string) *jetstream.Journal {
		j, err := jetstream.Open(ctx, c.Connect(t, c.account), jetstream.Options{Instance: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
	a, b := open("a"), open("b")
	if err := a.Lead(ctx, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	var before []storage.Record
	for i := range 6 {
		rec := storage.NewRecord(storage.KindIntent, time.UnixMilli(int64(i)), map[string]json.RawMessage{
			"decision": json.RawMessage(`{"verdict":"allow"}`), "summary": json.RawMessage(`{}`), "envelope": json.RawMessage(fmt.Sprintf(`"the word swordfish-%d"`, i)),
		})
		res, err := a.Commit(ctx, storage.Commit{ID: fmt.Sprint(i), Entries: []storage.Entry{{Record: rec, Target: storage.NoPosition, Holder: storage.NoPosition}}})
		if err != nil || res.Verdict != storage.Won {
			t.Fatalf("commit: %+v, %v", res, err)
		}
		rec.Position = res.Positions[0]
		before = append(before, rec)
	}
	stream, err := c.Connect(t, c.account).Stream(ctx, jetstream.KeyStream)
	if err != nil {
		t.Fatal(err)
	}
	file, err := stream.GetMsg(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	keys := file.Data                                 // in the order of the records
	for i, j := range []*jetstream.Journal{b, a, b} { // the last record too, and each by another router
		position := int64(2*i + 1)
		if err := j.Erase(ctx, position); err != nil {
			t.Fatal(err)
		}
		before[position], _ = before[position].Without("envelope")
	}
	if err := a.Erase(ctx, 1); err != nil { // a second time
		t.Fatal(err)
	}
	for name, j := range map[string]*jetstream.Journal{"a": a, "b": b, "later": open("later")} {
		if err := j.Fresh(ctx); err != nil {
			t.Fatal(err)
		}
		for { // a router hears of an erasure of another one in a moment
			var got []storage.Record
			for r, err := range j.Scan(ctx, 0) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r)
			}
			d := cmp.Diff(before, got)
			if d == "" {
				break
			}
			if clock.Sleep(ctx, 20*time.Millisecond) != nil {
				t.Fatalf("%s: -want +got:\n%s", name, d)
			}
		}
	}
	for i := range 3 {
		for n := range 6 {
			if inFiles(t, c.Blocks(i, c.account, jetstream.Stream), fmt.Appendf(nil, "swordfish-%d", n)) {
				t.Errorf("server %d has the word of record %d in the clear", i, n)
			}
			erased := n%2 == 1
			for inFiles(t, c.Blocks(i, c.account, jetstream.KeyStream), keys[32*n:32*n+32]) == erased { // a follower lags for a moment
				if clock.Sleep(ctx, 20*time.Millisecond) != nil {
					t.Fatalf("server %d, record %d: erased %v, and its key is there: %v", i, n, erased, erased)
				}
			}
		}
	}
}

// eraserVariable makes a process one that erases record 1 and is killed once the file of keys is
// stored anew, before the servers are asked to overwrite the old one: its URLs and account.
const eraserVariable = "WRIT_TEST_ERASER"

func eraseAndDie(of []string) error {
	js, err := natstest.Dial(of[0], of[1])
	if err != nil {
		return err
	}
	j, err := jetstream.Open(context.Background(), mortalServers{js}, jetstream.Options{Instance: "mortal"})
	if err != nil {
		return err
	}
	return j.Erase(context.Background(), 1)
}

// mortalServers kill the process that asks them to overwrite a message.
type mortalServers struct{ nats.JetStream }

func (m mortalServers) Stream(ctx context.Context, name string) (nats.Stream, error) {
	s, err := m.JetStream.Stream(ctx, name)
	return mortalStream{s}, err
}

type mortalStream struct{ nats.Stream }

func (mortalStream) SecureDeleteMsg(context.Context, uint64) error {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return err
	}
	select {} // the signal is on its way
}

// TestKilledEraser: a router that is killed between the new file of keys and the end of the old one
// leaves a record that is erased for everybody, and an old message that the next erasure overwrites
// on all servers.
func TestKilledEraser(t *testing.T) {
	c := newCell(t)
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	js := c.Connect(t, c.account)
	j, err := jetstream.Open(ctx, js, jetstream.Options{Instance: "a"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	if err := j.Lead(ctx, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		rec := storage.NewRecord(storage.KindIntent, time.UnixMilli(int64(i)), map[string]json.RawMessage{
			"decision": json.RawMessage(`{"verdict":"allow"}`), "summary": json.RawMessage(`{}`), "envelope": json.RawMessage(`"a word"`),
		})
		if res, err := j.Commit(ctx, storage.Commit{ID: fmt.Sprint(i), Entries: []storage.Entry{{Record: rec, Target: storage.NoPosition, Holder: storage.NoPosition}}}); err != nil || res.Verdict != storage.Won {
			t.Fatalf("commit: %+v, %v", res, err)
		}
	}
	stream, err := js.Stream(ctx, jetstream.KeyStream)
	if err != nil {
		t.Fatal(err)
	}
	file, err := stream.GetMsg(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	key := file.Data[32:64]
	eraser := exec.CommandContext(ctx, os.Args[0])
	eraser.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s", eraserVariable, strings.Join(c.URLs(), ","), c.account))
	out, err := eraser.CombinedOutput()
	if status, died := eraser.ProcessState.Sys().(syscall.WaitStatus); !died || status.Signal() != syscall.SIGKILL {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	if old, err := stream.GetMsg(ctx, 1); err != nil || !bytes.Contains(old.Data, key) {
		t.Fatalf("it was killed too late: %v", err)
	}
	later, err := jetstream.Open(ctx, c.Connect(t, c.account), jetstream.Options{Instance: "later"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = later.Close() })
	for i := range int64(3) {
		if rec, err := later.Get(ctx, i); err != nil || (len(rec.Erased) > 0) != (i == 1) {
			t.Errorf("record %d: %v, erased %v", i, err, rec.Erased)
		}
	}
	if err := later.Erase(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.GetMsg(ctx, 1); err == nil {
		t.Error("the old message is still there")
	}
	for i := range 3 {
		for inFiles(t, c.Blocks(i, c.account, jetstream.KeyStream), key) { // a follower lags for a moment
			if clock.Sleep(ctx, 20*time.Millisecond) != nil {
				t.Fatalf("server %d has the key", i)
			}
		}
	}
}

func inFiles(t *testing.T, files []string, word []byte) bool {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, word) {
			return true
		}
	}
	return false
}
