package bus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
)

// read returns the next n frames after a sequence number.
func read(t *testing.T, c bus.Conn, subject string, after uint64, n int) []bus.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out []bus.Frame
	err := c.Frames(ctx, subject, after, func(f bus.Frame) bool {
		out = append(out, f)
		return len(out) < n
	})
	if err != nil {
		t.Fatalf("%d frames after %d: %v", len(out), after, err)
	}
	return out
}

func texts(frames []bus.Frame) (out []string) {
	for _, f := range frames {
		out = append(out, string(f.Data))
	}
	return out
}

// Frames can be read from the first, from any other, and as they arrive; frames of other turns
// are not included.
func TestFramesResume(t *testing.T) {
	s := start(t)
	manager, gateway := connect(t, s, "manager"), connect(t, s, "gateway")
	reader := connect(t, s, natsserver.Frames)
	mine, other := bus.Turn("acme", "turn.1"), bus.Turn("other", "turn.1")
	for i := range 6 {
		for _, subject := range []string{mine, other} {
			if err := manager.Publish(subject, []byte(strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := read(t, reader, mine, 0, 6)
	if d := cmp.Diff([]string{"0", "1", "2", "3", "4", "5"}, texts(first)); d != "" {
		t.Error(d)
	}
	for i := 1; i < len(first); i++ {
		if first[i].Seq <= first[i-1].Seq {
			t.Errorf("sequence does not grow: %d after %d", first[i].Seq, first[i-1].Seq)
		}
	}
	if d := cmp.Diff([]string{"4", "5"}, texts(read(t, reader, mine, first[3].Seq, 2))); d != "" {
		t.Error(d)
	}

	live := make(chan []bus.Frame, 1)
	started := make(chan struct{})
	go func() {
		var out []bus.Frame
		err := reader.Frames(t.Context(), mine, first[4].Seq, func(f bus.Frame) bool {
			if out = append(out, f); len(out) == 1 {
				close(started)
			}
			return len(out) < 3
		})
		if err != nil {
			t.Error(err)
		}
		live <- out
	}()
	<-started
	for _, text := range []string{"6", "7"} {
		if err := gateway.Publish(mine, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"5", "6", "7"}, texts(<-live)); d != "" {
		t.Error(d)
	}
}

func TestFramesEndWithContext(t *testing.T) {
	s := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	if err := connect(t, s, "manager").Publish(bus.Turn("acme", "t1"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	err := connect(t, s, natsserver.Frames).Frames(ctx, bus.Turn("acme", "t1"), 0, func(bus.Frame) bool { cancel(); return true })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// A client's Last-Event-ID survives a restart of the server: the numbers after the restart are
// higher.
func TestFramesGrowOverRestarts(t *testing.T) {
	var last uint64
	for range 2 {
		s := start(t)
		if err := connect(t, s, "manager").Publish(bus.Turn("acme", "t1"), []byte("x")); err != nil {
			t.Fatal(err)
		}
		f := read(t, connect(t, s, natsserver.Frames), bus.Turn("acme", "t1"), last, 1)
		if f[0].Seq <= last || f[0].Seq >= 1<<53 {
			t.Errorf("sequence %d after %d", f[0].Seq, last)
		}
		last = f[0].Seq
	}
}

// Creating the stream again does not change it.
func TestEnsureFramesTwice(t *testing.T) {
	s := start(t)
	if err := connect(t, s, "manager").Publish(bus.Turn("acme", "t1"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	read(t, connect(t, s, natsserver.Frames), bus.Turn("acme", "t1"), 0, 1)
	if err := bus.EnsureFrames(t.Context(), connect(t, s, natsserver.Router)); err != nil {
		t.Fatal(err)
	}
	read(t, connect(t, s, natsserver.Frames), bus.Turn("acme", "t1"), 0, 1)
}

// TestFramesHaveShares: a tenant with many bytes in the stream loses its own older frames and no
// other tenant loses any, whether it has many small frames or few large ones.
func TestFramesHaveShares(t *testing.T) {
	s := start(t)
	manager, router, reader := connect(t, s, "manager"), connect(t, s, natsserver.Router), connect(t, s, natsserver.Frames)
	say := func(tenant string, n, size int) {
		for i := range n {
			if err := manager.Publish(bus.Turn(tenant, "t1"), fmt.Appendf(nil, "%0*d", size, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	say("modest.org", 300, 20)
	say("large", 20, 20_000)
	say("small", 2000, 100)
	read(t, reader, bus.Turn("small", "t1"), 0, 2000) // all are stored
	if err := bus.ShareFramesBelow(t.Context(), router, 1<<20); err != nil {
		t.Fatal(err)
	}
	read(t, reader, bus.Turn("large", "t1"), 0, 20) // all fit
	if err := bus.ShareFramesBelow(t.Context(), router, 200<<10); err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string]string{"modest.org": fmt.Sprintf("%020d", 0), "large": fmt.Sprintf("%020000d", 15), "small": fmt.Sprintf("%0100d", 1500)} {
		if got := texts(read(t, reader, bus.Turn(tenant, "t1"), 0, 1))[0]; got != want {
			t.Errorf("first frame of %s is %s, want %s", tenant, strings.TrimLeft(got, "0"), strings.TrimLeft(want, "0"))
		}
	}
}

// The creator of a consumer chooses the subject to which frames are delivered, and the server
// does not check whether it may publish there. The frames reach no stream and no service.
func TestFramesAreDeliveredNowhere(t *testing.T) {
	s := start(t)
	user := admitted(t, s, natsserver.Router).Asks
	router := asClient(t, s, user)
	js, err := jetstream.New(router)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "JOURNAL", Subjects: []string{"writ.exec.probe"}})
	if err != nil {
		t.Fatal(err)
	}
	frames := asClient(t, s, admitted(t, s, natsserver.Frames).Asks)
	for name, to := range map[string]string{"a": "writ.exec.probe", "b": "writ.intents", "c": "writ.events.acme.step", "d": "_INBOX_" + user.User + ".x"} {
		raw, err := json.Marshal(map[string]any{"stream_name": "FRAMES", "config": map[string]any{"name": name, "filter_subject": "writ.turn.acme.t1", "deliver_subject": to}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := frames.Request("writ.frames.CONSUMER.CREATE.FRAMES."+name+".writ.turn.acme.t1", raw, patience)
		if err != nil || !bytes.Contains(m.Data, []byte(`"deliver_subject"`)) {
			t.Fatalf("%s %v", m.Data, err)
		}
	}
	if err := connect(t, s, "manager").Publish(bus.Turn("acme", "t1"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	read(t, connect(t, s, natsserver.Frames), bus.Turn("acme", "t1"), 0, 1)
	if _, err := js.Publish(t.Context(), "writ.exec.probe", nil); err != nil {
		t.Fatal(err)
	}
	if info, err := journal.Info(t.Context()); err != nil || info.State.Msgs != 1 {
		t.Errorf("%+v: %v", info.State, err)
	}
}

// asClient connects as any client of NATS would.
func asClient(t *testing.T, s *natsserver.Server, c natsserver.Credentials) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo(c.User, c.Password), nats.CustomInboxPrefix("_INBOX_"+c.User))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
