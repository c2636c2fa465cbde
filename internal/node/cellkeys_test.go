package node

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	nats "github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
)

// TestCellKeys: a router of a cell whose log is older than its keys takes no intent before each
// missing erasure is signed again, and then serves without a restart. One whose keys are older, of
// another log or missing serves: what it cannot read is damage.
func TestCellKeys(t *testing.T) {
	c := newCell(t, "a")
	cfg := c.config("a", "router")
	c.begin(cfg)
	submit := func(n *Node, typ string, args any) (a intents.Answer) {
		t.Helper()
		c.call("", http.MethodPost, n.url()+"/v1/intents", c.sign("operator", intents.RoleOperator, typ, args), &a)
		return a
	}
	soul := func(n *Node, user string) intents.Answer {
		t.Helper()
		return submit(n, "soul.put", json.RawMessage(`{"user_id":"`+user+`","persona":{"name":"N","tone":"plain","language":"en","system_prompt":"Be brief."}}`))
	}
	start := func(t *testing.T) (n *Node, stop func()) {
		t.Helper()
		n, end, err := Start(context.WithoutCancel(t.Context()), cfg)
		must(t, err)
		return n, func() { t.Helper(); must(t, end()) }
	}
	n, stop := start(t)
	defer func() { stop() }()
	for _, row := range []struct {
		name   string
		harm   func(t *testing.T, n *Node, position int64)
		refuse bool
	}{
		{name: "as new", harm: func(*testing.T, *Node, int64) {}},
		{name: "newer", refuse: true, harm: func(t *testing.T, n *Node, position int64) {
			t.Helper()
			must(t, n.journal.(storage.Eraser).Erase(t.Context(), position, position+1))
		}},
		{name: "older or missing", harm: func(t *testing.T, n *Node, _ int64) {
			t.Helper()
			s, err := keyStream(t, n).Stream(t.Context(), jetstream.KeyStream)
			must(t, err)
			info, err := s.Info(t.Context())
			must(t, err)
			must(t, s.SecureDeleteMsg(t.Context(), info.State.LastSeq))
		}},
		{name: "of another log", harm: func(t *testing.T, n *Node, _ int64) {
			t.Helper()
			js := keyStream(t, n)
			s, err := js.Stream(t.Context(), jetstream.KeyStream)
			must(t, err)
			info, err := s.Info(t.Context())
			must(t, err)
			m, err := s.GetMsg(t.Context(), info.State.LastSeq)
			must(t, err)
			for i := range m.Data {
				m.Data[i] ^= 0x55
			}
			_, err = js.Publish(t.Context(), m.Subject, m.Data)
			must(t, err)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			written := soul(n, "ana")
			if written.Position == nil {
				t.Fatalf("%+v", written)
			}
			row.harm(t, n, *written.Position)
			stop()
			n, stop = start(t)
			if status := c.call("", http.MethodGet, n.url()+"/readyz", nil, nil); status != map[bool]int{false: 200, true: 503}[row.refuse] || n.health.Up(conditionErasures) != row.refuse {
				t.Errorf("/readyz is %d: %+v", status, n.health.List())
			}
			if a := soul(n, "bea"); (a.Code == intents.Overloaded && strings.Contains(a.Hint, "audit fsck")) != row.refuse {
				t.Errorf("%+v", a)
			}
			if !row.refuse {
				return
			}
			a := submit(n, "record.erase", catalog.RecordErase{Tenant: "system", IntentID: written.IntentID, Position: *written.Position, Parts: []string{catalog.ErasesEnvelope, catalog.ErasesResult}, Reason: "asked"})
			if a.Code != intents.OK {
				t.Fatalf("%+v", a)
			}
			if a := soul(n, "bea"); a.Code == intents.Overloaded {
				t.Errorf("%+v", a)
			}
			must(t, clock.Every(c.within(), lookEvery/10, func() bool { return !n.health.Up(conditionErasures) }))
			if status := c.call("", http.MethodGet, n.url()+"/readyz", nil, nil); status != http.StatusOK {
				t.Errorf("/readyz is %d afterwards", status)
			}
		})
	}
	if _, all := n.directory.Unexplained(0); all != 0 {
		t.Errorf("%d are unexplained in the end", all)
	}
	for rec, err := range n.journal.Scan(t.Context(), 0) {
		must(t, err)
		if rec.Kind == storage.KindIntent {
			_, err := state.ReadIntent(rec)
			must(t, err)
		}
	}
}

func keyStream(t *testing.T, n *Node) nats.JetStream {
	t.Helper()
	js, err := bus.JetStream(n.conns.of(natsserver.Router))
	must(t, err)
	return js
}
