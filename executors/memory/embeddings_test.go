package memory_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
)

func hashed(t *testing.T) embed.Embedder {
	t.Helper()
	h, err := embed.NewHashed(dimension)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// remember writes a memory of somebody.
func (b *bench) remember(t *testing.T, tenant, user, session, scope, label, text string) intents.Report {
	t.Helper()
	in := scoped(write(task("task_1", 1), label, `["`+text+`"]`), scope)
	in.Ticket.Scope.ReturnSpec = spec("array<string>")
	in.Ticket.Actor.Tenant, in.Ticket.Actor.UserID, in.Context.SessionID = tenant, user, session
	return b.Must(t, in, nil)
}

// ask sends memory.query for ana in sess_1.
func (b *bench) ask(t *testing.T, text, scope string, topK int) catalog.MemoryQueryResult {
	t.Helper()
	var got catalog.MemoryQueryResult
	b.Must(t, executortest.Intent{Type: "memory.query", NoScope: true, Args: catalog.MemoryQuery{Text: text, Scope: scope, TopK: topK}}, &got)
	return got
}

func labels(hits []catalog.MemoryHit) string {
	var out strings.Builder
	for _, h := range hits {
		out.WriteString(h.Key[strings.LastIndexByte(h.Key, ':')+1:])
	}
	return out.String()
}

// nearMemories: a question by vectors finds what is alike without sharing a word,
// in what the actor may see alone: the filters hold before neighbours are counted,
// so that nearer memories of others take no place. settle is called
// between writing and asking.
func nearMemories(t *testing.T, b *bench, refresh func()) {
	t.Helper()
	b.remember(t, "acme", "ana", "sess_1", "session", "a", "harbours opened hourly")
	b.remember(t, "acme", "ana", "sess_2", "session", "b", "harbour opening hour")
	b.remember(t, "acme", "ana", "sess_2", "user", "c", "harbourmaster")
	b.remember(t, "acme", "ana", "sess_2", "user", "z", "invoice 4711")
	for _, session := range []string{"sess_3", "sess_4", "sess_5", "sess_6"} {
		b.remember(t, "acme", "bob", session, "user", "d", "harbour opening hour")
		b.remember(t, "evil", "ana", session, "tenant", "f", "harbour opening hour")
		b.advance(memory.LockLease)
	}
	b.remember(t, "acme", "bob", "sess_3", "tenant", "e", "our harbours")
	refresh()
	for _, tt := range []struct {
		scope string
		topK  int
		want  string
	}{{"session", 3, "a"}, {"user", 1, "c"}, {"tenant", 3, "e"}, {"", 2, "ae"}, {"", 3, "aec"}} {
		got := b.ask(t, "harbour opening hour", tt.scope, tt.topK)
		if labels(got.Hits) != tt.want || got.By != catalog.ByVectors || got.Embedder != "hashed" || got.Reason != "" {
			t.Errorf("%q top %d: %s, want %s: %+v", tt.scope, tt.topK, labels(got.Hits), tt.want, got)
		}
		for _, h := range got.Hits {
			if h.Score <= 0 || h.Score > 1 {
				t.Errorf("score of %+v", h)
			}
		}
	}
	b.advance(memory.SessionTTL)
	if got := b.ask(t, "harbour opening hour", "session", 0); len(got.Hits) != 0 {
		t.Errorf("expired: %+v", got)
	}
}

func TestQueryNear(t *testing.T) { nearMemories(t, on(t, embedded(t), hashed(t)), func() {}) }

// TestQueryByWords: without an embedder a question goes by words, and says so.
func TestQueryByWords(t *testing.T) {
	b := open(t)
	b.remember(t, "acme", "ana", "sess_1", "session", "a", "harbours opened hourly")
	if got := b.ask(t, "harbour", "", 0); len(got.Hits) != 0 || got.By != catalog.ByWords || got.Reason != "there is no embedder" {
		t.Errorf("%+v", got)
	}
	if got := b.ask(t, "harbours", "", 0); labels(got.Hits) != "a" || got.By != catalog.ByWords || got.Hits[0].Score != 0 {
		t.Errorf("%+v", got)
	}
}

// unreliable is a service of hashed vectors that can fail.
type unreliable struct {
	*embed.OpenAI
	status atomic.Int64 // 0: it answers
	texts  atomic.Int64 // texts
}

func newUnreliable(t *testing.T, model string) *unreliable {
	t.Helper()
	u, vectors := new(unreliable), hashed(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		u.texts.Add(int64(len(in.Input)))
		if status := u.status.Load(); status != 0 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(int(status))
			return
		}
		made, err := vectors.Embed(r.Context(), in.Input)
		if err != nil {
			t.Error(err)
		}
		var out struct {
			Data []map[string]any `json:"data"`
		}
		for i, v := range made {
			out.Data = append(out.Data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(s.Close)
	var err error
	if u.OpenAI, err = embed.NewOpenAI(embed.OpenAIConfig{BaseURL: s.URL, Model: model, Dimension: dimension}); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestEmbedderFails: a write is never lost for want of a vector; it says so, a
// question meanwhile goes by words, and the vector is made later.
func TestEmbedderFails(t *testing.T) {
	u := newUnreliable(t, "m")
	b := on(t, embedded(t), u)
	r := b.remember(t, "acme", "ana", "sess_1", "user", "a", "harbours opened hourly")
	if f := executortest.EventPayload(t, r, "memory.written"); f["embedder"] != "openai:m" || f["unembedded"] != nil {
		t.Errorf("%v", f)
	}
	for status, reason := range map[int64]string{503: "the embedder does not answer", 401: "the embedder gives no vector"} {
		u.status.Store(status)
		b.advance(memory.LockLease)
		r := b.remember(t, "acme", "ana", "sess_2", "user", "b", "harbourmaster")
		if f := executortest.EventPayload(t, r, "memory.written"); f["embedder"] != nil || f["unembedded"] != reason {
			t.Errorf("%d: %v", status, f)
		}
		if got := b.ask(t, "harbourmaster", "", 0); labels(got.Hits) != "b" || got.By != catalog.ByWords || got.Reason != reason {
			t.Errorf("%d: %+v", status, got)
		}
	}
	fill := executors.Backfill{Documents: b.docs, Embedder: u, Indices: []executors.EmbeddedIndex{memory.Embedded}}
	if made, err := fill.Fill(t.Context(), "acme"); err == nil || made != 0 {
		t.Errorf("made %d, %v", made, err)
	}
	u.status.Store(0)
	if got := b.ask(t, "harbour", "", 0); labels(got.Hits) != "a" || got.By != catalog.ByVectors {
		t.Errorf("not filled yet: %+v", got)
	}
	before := position(t, b, "acme:sess_2:task_1:b")
	if _, err := fill.Fill(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if got := b.ask(t, "harbour", "", 0); labels(got.Hits) != "ba" && labels(got.Hits) != "ab" {
		t.Errorf("filled: %+v", got)
	}
	if after := position(t, b, "acme:sess_2:task_1:b"); after != before {
		t.Errorf("position %d, was %d: its writer would be fenced off", after, before)
	}
	u.texts.Store(0)
	if made, err := fill.Fill(t.Context(), "acme"); err != nil || made != 0 || u.texts.Load() != 0 {
		t.Errorf("again: made %d with %d texts, %v", made, u.texts.Load(), err)
	}
}

func position(t *testing.T, b *bench, id string) int64 {
	t.Helper()
	doc, err := b.docs.Get(t.Context(), "acme", storage.IndexMemory, id)
	if err != nil {
		t.Fatal(err)
	}
	return doc.Position
}

// TestAnotherEmbedder: vectors of two embedders do not compare, so all are made
// again and until then compared with none; locks have none and are no memories.
func TestAnotherEmbedder(t *testing.T) {
	b := on(t, embedded(t), hashed(t))
	for _, label := range []string{"a", "b", "c"} {
		b.remember(t, "acme", "ana", "sess_1", "user", label, "harbours "+label)
	}
	for i, e := range []embed.Embedder{hashed(t), newUnreliable(t, "one"), newUnreliable(t, "two")} {
		asker, lacking := on(t, b.docs, e), min(3*i, 3)
		if got := asker.ask(t, "harbours", "", 50); got.By != catalog.ByVectors || len(got.Hits) != 3-lacking {
			t.Errorf("%s compares with the vectors of another: %+v", e.Name(), got)
		}
		fill := executors.Backfill{Documents: b.docs, Embedder: e, Indices: []executors.EmbeddedIndex{memory.Embedded}}
		for _, want := range []int{lacking, 0} {
			if made, err := fill.Fill(t.Context(), "acme"); err != nil || made != want {
				t.Errorf("%s: made %d, want %d, %v", e.Name(), made, want, err)
			}
		}
		if got := asker.ask(t, "harbours", "", 50); len(got.Hits) != 3 {
			t.Errorf("%s: %+v", e.Name(), got)
		}
	}
	if got := on(t, b.docs, nil).ask(t, "openai two embedder lock harbours", "", 50); len(got.Hits) != 3 {
		t.Errorf("%+v", got)
	}
}
