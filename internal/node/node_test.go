package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

func TestMain(m *testing.M) {
	if os.Getenv(spyVar) != "" {
		os.Exit(spy())
	}
	os.Exit(m.Run())
}

// patience bounds waits that a correct node ends at once.
const patience = 20 * time.Second

// messages is a log that tests can wait on.
type messages struct {
	slog.Handler
	mu       sync.Mutex // guards told and said
	messages []string
	logged   chan struct{} // closed at the next message
}

func newMessages() *messages {
	return &messages{Handler: slog.DiscardHandler, logged: make(chan struct{})}
}

func (m *messages) Enabled(context.Context, slog.Level) bool { return true }

func (m *messages) Handle(_ context.Context, r slog.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages = append(m.messages, r.Message)
	close(m.logged)
	m.logged = make(chan struct{})
	return nil
}

func (m *messages) logger() *slog.Logger { return slog.New(m) }

// count is how often a message came.
func (m *messages) count(text string) int {
	n, _ := m.look(text)
	return n
}

func (m *messages) look(text string) (n int, next <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.messages {
		if t == text {
			n++
		}
	}
	return n, m.logged
}

// wait waits until a message came n times.
func (m *messages) wait(t *testing.T, text string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		have, next := m.look(text)
		if have >= n {
			return
		}
		select {
		case <-next:
		case <-ctx.Done():
			t.Fatalf("%q came %d times, not %d", text, have, n)
		}
	}
}

func config(dir string) Config {
	return Config{Dir: dir, Listen: "127.0.0.1:0", Model: offline.Model{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
}

// open opens a node and closes it with the test.
func open(t *testing.T, cfg Config) *Node {
	t.Helper()
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

// run starts a node and waits until it is ready. stop ends it and gives what
// Run returned; the test does so at its end where nobody did.
func run(t *testing.T, n *Node) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.Run(ctx, ready) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("not ready: %v", err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return stop
}

// once runs a node from first to last.
func once(t *testing.T, cfg Config) (apiKey string, records []storage.Record) {
	t.Helper()
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t, n)(); err != nil {
		t.Fatal(err)
	}
	apiKey, records = n.APIKey, all(t, n)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	return apiKey, records
}

// all reads the whole journal.
func all(t *testing.T, n *Node) []storage.Record {
	t.Helper()
	var out []storage.Record
	for r, err := range n.Records().Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// short is a record in short: the type of an intent, the code of an outcome.
func short(t *testing.T, r storage.Record) string {
	t.Helper()
	switch r.Kind {
	case storage.KindIntent:
		s, err := state.ReadIntent(r)
		if err != nil {
			t.Fatal(err)
		}
		return "intent " + s.Type
	case storage.KindOutcome:
		out, _, err := state.OutcomeOf(r)
		if err != nil {
			t.Fatal(err)
		}
		return "outcome " + string(out.Code)
	case storage.KindControl:
		c := controlOf(t, r)
		switch {
		case c.Genesis != nil:
			return "control genesis"
		case c.Policy != "":
			return "control policy"
		}
	default:
	}
	return string(r.Kind)
}

func controlOf(t *testing.T, r storage.Record) state.Control {
	t.Helper()
	var c state.Control
	if err := json.Unmarshal(r.Parts[storage.PartControl], &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// shortAll are the records in short.
func shortAll(t *testing.T, records []storage.Record) []string {
	t.Helper()
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = short(t, r)
	}
	return out
}

// firstRecords of a data directory without skills.
var firstRecords = []string{"control genesis", "intent admin.put", "outcome " + string(intents.OK), "intent admin.put", "outcome " + string(intents.OK)}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
