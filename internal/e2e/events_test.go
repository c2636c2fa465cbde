package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/intents/catalog"
)

// follow calls handle with each event of a tenant. last is the id of the last one that
// handle has seen, or empty.
func follow(ctx context.Context, url, seedFile, tenant, reader, last string, handle func(id string, event []byte) error) error {
	key, err := nats.NkeyOptionFromSeed(seedFile)
	if err != nil {
		return err
	}
	nc, err := nats.Connect(url, key, nats.CustomInboxPrefix("_INBOX_hearer_"+reader),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond), nats.IgnoreAuthErrorAbort())
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.NewWithAPIPrefix(nc, "writ.jetstream")
	if err != nil {
		return err
	}
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		// After a restart of the server the stream and its consumers are gone.
		consumer, err := js.CreateOrUpdateConsumer(ctx, "EVENTS", jetstream.ConsumerConfig{Durable: reader, FilterSubject: "writ.events." + tenant + ".>"})
		for err == nil {
			var batch jetstream.MessageBatch
			if batch, err = consumer.Fetch(100, jetstream.FetchMaxWait(time.Second)); err != nil {
				break
			}
			for m := range batch.Messages() {
				if id := m.Headers().Get(nats.MsgIdHdr); id > last { // else it was handled before
					if err := handle(id, m.Data()); err != nil {
						return err
					}
					last = id
				}
				_ = m.Ack() // else it comes again
			}
			err = errors.Join(batch.Error(), ctx.Err())
		}
	}
	return ctx.Err()
}

// TestEvents: another system receives a denial, a memory write and a cancel, in order and once,
// although writ is killed in between. A reader of another tenant receives none of it.
func TestEvents(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	m := porter("parcel_weigh")
	decide, stands, proceed, release := m.act, make(chan struct{}, 10), make(chan struct{}), make(chan struct{})
	holds := make(chan chan struct{}, 1)
	holds <- proceed // the first time that step 2 acts; every other time it waits for the end
	m.act = func(in working) action {
		if in.Step == 2 {
			stands <- struct{}{}
			select {
			case hold := <-holds:
				<-hold
			case <-release:
			}
		}
		return decide(in)
	}
	d := serveDepot(t, nil)
	x := boot(t, m, d.skills, "--nats", address)
	t.Cleanup(func() { close(release) })

	heard := map[string]*hearing{}
	for _, tenant := range []string{"default", "other.org"} {
		seed := filepath.Join(t.TempDir(), "seed")
		x.writ("admin", "events", "issue", "crm", "--tenant", tenant, "--out", seed, "--data", x.dir)
		h := &hearing{}
		heard[tenant] = h
		ended := make(chan error, 1)
		name := strings.ReplaceAll(tenant, ".", "~")
		go func() { ended <- follow(t.Context(), "nats://"+address, seed, name, name+"_crm", "", h.hear) }()
		t.Cleanup(func() {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	id := x.ask(accepted)
	await(t, stands)
	x.writ("tenant", "data", "skills_allow", `["parcel_list"]`, "--tenant", "default", "--url", x.url, "--data", x.dir)
	close(proceed)
	await(t, stands)
	x.await("the denial is heard", func() bool { return heard["default"].has(id, "intent.denied") })
	before := len(heard["default"].ofPlan(id))
	x.kill()
	x.start()
	await(t, stands)
	if status, p := x.call(x.as("local"), http.MethodDelete, "/agent/plans/"+id, nil, nil); status != http.StatusOK {
		t.Fatalf("HTTP %d %+v", status, p)
	}
	x.await("the cancel is heard", func() bool { return heard["default"].has(id, "plan.cancelled") })

	var trace struct{ Events []hearsay }
	if status, p := x.call(x.as("local"), http.MethodGet, "/agent/plans/"+id+"/trace", nil, &trace); status != http.StatusOK {
		t.Fatalf("HTTP %d %+v", status, p)
	}
	var want, types []string
	for _, e := range trace.Events {
		if catalog.EventKind(e.Type) != "" {
			want = append(want, e.ID+" "+e.Type)
			types = append(types, e.Type)
		}
		if e.Type == "plan.cancelled" {
			break // what comes of tasks that end later may come still
		}
	}
	got := heard["default"].ofPlan(id)
	if d := gocmp.Diff(want, got[:min(len(want), len(got))]); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	all := strings.Join(types, " ")
	for _, typ := range []string{"subagent_a.spawned", "memory.upsert", "step_1.complete", "intent.denied", "plan.cancelled"} {
		_, after, found := strings.Cut(all, typ)
		if !found {
			t.Errorf("%s is missing, or comes before another: %s", typ, all)
		}
		all = after
	}
	if before < 10 || len(got) <= before {
		t.Errorf("%d events before the death, %d in all", before, len(got))
	}
	if h := heard["other.org"]; h.count() != 0 {
		t.Errorf("the reader of another tenant hears %v", h.ids)
	}
}

// The page has the client that is tested here.
func TestEventsPage(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("events_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, client, _ := bytes.Cut(source, []byte("// follow calls"))
	client, _, _ = bytes.Cut(client, []byte("\n}\n"))
	if len(client) < 500 || !bytes.Contains(page, client) {
		t.Error("docs/events.md does not have the function follow as it is here")
	}
}

type hearsay struct {
	ID     string `json:"event_id"`
	Type   string `json:"event_type"`
	PlanID string `json:"plan_id"`
}

// hearing is what a reader has handled.
type hearing struct {
	mu     sync.Mutex
	ids    []string
	events []hearsay
}

func (h *hearing) hear(id string, raw []byte) error {
	var e hearsay
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids, h.events = append(h.ids, id), append(h.events, e)
	return nil
}

func (h *hearing) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ids)
}

// ofPlan are the events of a plan, as they came.
func (h *hearing) ofPlan(plan string) (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.PlanID == plan {
			out = append(out, e.ID+" "+e.Type)
		}
	}
	return out
}

func (h *hearing) has(plan, typ string) bool {
	for _, e := range h.ofPlan(plan) {
		if strings.HasSuffix(e, " "+typ) {
			return true
		}
	}
	return false
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("nobody came")
	}
}
