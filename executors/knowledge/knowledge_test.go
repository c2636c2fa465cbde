package knowledge_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
	"aob.dev/writ/storage/sqlite"
	"aob.dev/writ/storage/views"
)

// dimension of vectors: that of the model whose vectors are in testdata.
const dimension = 384

// bench is the executor on real stores.
type bench struct {
	*executortest.Executor
	docs  storage.Documents
	blobs storage.Blobs
	now   time.Time
}

// embedded is the store of one process.
func embedded(tb testing.TB) *sqlite.Documents {
	tb.Helper()
	docs, err := sqlite.OpenDocuments(tb.Context(), filepath.Join(tb.TempDir(), "documents.db"), storage.NewCheck(dimension), 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = docs.Close() })
	return docs
}

// on is the executor on a store, with a changed configuration.
func on(tb testing.TB, docs storage.Documents, change func(*knowledge.Config)) *bench {
	tb.Helper()
	blobs, err := blobdir.Open(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	b := &bench{docs: docs, blobs: blobs, now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	cfg := knowledge.Config{Documents: docs, Blobs: blobs, Now: b.clock}
	if change != nil {
		change(&cfg)
	}
	b.Executor = executortest.New(tb, knowledge.Name, b.clock, knowledge.Handlers(cfg))
	return b
}

func (b *bench) clock() time.Time { return b.now }

func hashed(tb testing.TB) embed.HashEmbedder {
	tb.Helper()
	h, err := embed.NewHashed(dimension)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

func withHashed(tb testing.TB) func(*knowledge.Config) {
	tb.Helper()
	return func(c *knowledge.Config) { c.Embedder = hashed(tb) }
}

// as is an intent of a user, outside a task.
func as(tenant, user, typ string, args any) executortest.Intent {
	o := executortest.Intent{Type: typ, NoScope: true, Args: args}
	o.Ticket.Actor.Tenant, o.Ticket.Actor.UserID = tenant, user
	return o
}

func plain(title, text string) catalog.KBIndex {
	raw, _ := json.Marshal(text)
	return catalog.KBIndex{Title: title, Data: raw, MediaType: "text/plain"}
}

func ofTenant(a catalog.KBIndex) catalog.KBIndex {
	a.Scope = catalog.KnowledgeOfTenant
	return a
}

func (b *bench) index(tb testing.TB, tenant, user string, a catalog.KBIndex) (out catalog.KBIndexResult) {
	tb.Helper()
	b.Must(tb, as(tenant, user, "kb.index", a), &out)
	return out
}

func (b *bench) search(tb testing.TB, a catalog.KBSearch) (out catalog.KBSearchResult) {
	tb.Helper()
	b.Must(tb, as("acme", "ana", "kb.search", a), &out)
	return out
}

func titles(found catalog.KBSearchResult) string {
	var out []string
	for _, h := range found.Hits {
		out = append(out, h.Title)
	}
	return strings.Join(out, " ")
}

func (b *bench) listed(tb testing.TB, user string) string {
	tb.Helper()
	got, err := views.Knowledge(tb.Context(), b.docs, "acme", user, catalog.KBList{})
	if err != nil {
		tb.Fatal(err)
	}
	var out []string
	for _, d := range got.Documents {
		out = append(out, d.Title)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestKnowledge: who adds finds it, with its place and why; others do not. What replaces a
// document takes its place, and what is removed is gone.
func TestKnowledge(t *testing.T) { addedDocuments(t, embedded(t)) }

func addedDocuments(t *testing.T, docs storage.Documents) {
	t.Helper()
	b := on(t, docs, withHashed(t))
	for i := range 5 { // words of few documents weigh more
		b.index(t, "evil", "eve", plain(strconv.Itoa(i), "Invoices are due within thirty days."))
	}
	notes := plain("notes", "The harbour opens at six. The lock opens at seven.")
	notes.Metadata = map[string]string{"year": "2026", "team": "sea"}
	first := b.index(t, "acme", "ana", notes)
	if first.Chunks != 1 || first.SizeBytes != 50 || first.Embedder != "hashed" || first.Existed {
		t.Errorf("%+v", first)
	}
	if again := b.index(t, "acme", "ana", notes); again.DocumentID != first.DocumentID || !again.Existed {
		t.Errorf("the same again: %+v", again)
	}
	b.index(t, "acme", "ana", ofTenant(plain("rules", "Nobody enters the harbour at night.")))
	b.index(t, "acme", "bob", plain("secret", "The harbour opens for me alone."))
	b.index(t, "evil", "ana", ofTenant(plain("foreign", "The harbour is ours.")))

	got := b.search(t, catalog.KBSearch{Q: "the harbour opens at six"})
	if titles(got) != "notes rules" || !slices.Equal(got.By, []string{"words", "vectors"}) || got.Embedder != "hashed" || got.Reason != "" {
		t.Fatalf("%s: %+v", titles(got), got)
	}
	hit := got.Hits[0]
	if s := hit.Scores; s.Words <= 0 || s.Vector <= 0 || s.Fused != 2.0/61 || s.Rerank != nil {
		t.Errorf("scores %+v", s)
	}
	if hit.DocumentID != first.DocumentID || hit.Chunk != 0 || hit.Scope != "user" || hit.Metadata["team"] != "sea" || !intents.IsDigest(hit.Source) || got.Hits[1].Scope != "tenant" {
		t.Errorf("%+v", hit)
	}
	for want, filters := range map[string]map[string]string{
		"notes": {"year": "2026", "team": "sea", "tenant": "acme"}, "": {"year": "2026", "team": "land"}, "rules": {"scope": "tenant"},
		"notes rules": {"media_type": "text/plain"},
	} {
		if got := titles(b.search(t, catalog.KBSearch{Q: "harbour opens", Filters: filters})); got != want {
			t.Errorf("%v: %s", filters, got)
		}
	}
	words := b.search(t, catalog.KBSearch{Q: "harbour", K: new(1), Hybrid: new(false)})
	if len(words.Hits) != 1 || !slices.Equal(words.By, []string{"words"}) || words.Embedder != "" {
		t.Errorf("%+v", words)
	}

	better := plain("better", "The harbour opens at five.")
	better.Supersedes = first.DocumentID
	second := b.index(t, "acme", "ana", better)
	if got := titles(b.search(t, catalog.KBSearch{Q: "harbour opens", Filters: map[string]string{"scope": "user"}})); got != "better" {
		t.Errorf("after a replacement: %s", got)
	}
	b.Must(t, as("acme", "ana", "kb.remove", catalog.KBRemove{DocumentID: second.DocumentID}), nil)
	if got := b.listed(t, "ana"); got != "rules" {
		t.Errorf("after a removal: %s", got)
	}
	if r := b.Do(t, as("acme", "ana", "kb.remove", catalog.KBRemove{DocumentID: second.DocumentID})); r.Code != intents.NotFound {
		t.Errorf("removed twice: %+v", r)
	}
	better.Supersedes = ""
	if back := b.index(t, "acme", "ana", better); back.Existed || b.listed(t, "ana") != "better rules" {
		t.Errorf("added again: %+v", back)
	}
}

// TestTaskKnowledge: a task writes what its user alone finds.
func TestTaskKnowledge(t *testing.T) {
	b := on(t, embedded(t), nil)
	b.Must(t, executortest.Intent{Type: "kb.index", Args: plain("own", "A harbour.")}, nil)
	r := b.Do(t, executortest.Intent{Type: "kb.index", Args: ofTenant(plain("ours", "A harbour."))})
	if r.Code != intents.TaskScope || pointerOf(t, r) != "/scope" {
		t.Errorf("for the tenant: %+v", r)
	}
	var got catalog.KBSearchResult
	b.Must(t, executortest.Intent{Type: "kb.search", Args: catalog.KBSearch{Q: "harbour"}}, &got)
	if titles(got) != "own" || got.Reason != "there is no embedder" || !slices.Equal(got.By, []string{"words"}) {
		t.Errorf("%+v", got)
	}
	if got := b.listed(t, "bob"); got != "" {
		t.Errorf("bob has %s", got)
	}
}

func pointerOf(tb testing.TB, r intents.Report) string {
	tb.Helper()
	var d struct {
		Violations []struct{ Pointer, Reason string }
	}
	if err := json.Unmarshal(r.Result, &d); err != nil || len(d.Violations) != 1 || d.Violations[0].Reason == "" {
		tb.Errorf("no violation: %s", r.Result)
		return ""
	}
	return d.Violations[0].Pointer
}

// TestRefused: what is wrong is named, and nothing is written.
func TestRefused(t *testing.T) {
	b := on(t, embedded(t), withHashed(t))
	mine := b.index(t, "acme", "ana", plain("mine", "The harbour opens at six."))
	bobs := b.index(t, "acme", "bob", plain("bobs", "The harbour opens at six."))
	large, _, err := b.blobs.Keep(t.Context(), "acme", strings.NewReader(strings.Repeat("A harbour opens. ", 100<<20/17)))
	if err != nil {
		t.Fatal(err)
	}
	from := func(ref string) func(*executortest.Intent) {
		return func(o *executortest.Intent) {
			o.Ticket.Inputs = []intents.Input{{Pointer: "/data", Ref: ref, SHA256: strings.TrimPrefix(ref, "cas://")}}
		}
	}
	of := func(a catalog.KBIndex, mediaType, supersedes string) catalog.KBIndex {
		a.MediaType, a.Supersedes = mediaType, supersedes
		return a
	}
	for name, tt := range map[string]struct {
		typ     string
		args    any
		code    intents.Code
		pointer string
		change  func(*executortest.Intent)
	}{
		"100 MB":             {"kb.index", catalog.KBIndex{Title: "t", From: large, MediaType: "text/plain"}, intents.MalformedArgs, "/from", from(large)},
		"blank":              {"kb.index", plain("t", " \n\t "), intents.MalformedArgs, "/data", nil},
		"page without text":  {"kb.index", of(plain("t", "<html><script>harbour()</script><p> </p></html>"), "text/html", ""), intents.MalformedArgs, "/data", nil},
		"binary":             {"kb.index", plain("t", "a\x00b"), intents.MalformedArgs, "/data", nil},
		"unknown type":       {"kb.index", of(plain("t", "a"), "image/png", ""), intents.MalformedArgs, "/data", nil},
		"supersedes nothing": {"kb.index", of(plain("t", "a"), "text/plain", intents.Digest(nil)), intents.NotFound, "/supersedes", nil},
		"supersedes bob's":   {"kb.index", of(plain("t", "a"), "text/plain", bobs.DocumentID), intents.NotFound, "/supersedes", nil},
		"metadata":           {"kb.index", catalog.KBIndex{Title: "t", Data: json.RawMessage(`"a"`), MediaType: "text/plain", Metadata: map[string]string{"tenant": "evil"}}, intents.MalformedArgs, "/metadata/tenant", nil},
		"removes bob's":      {"kb.remove", catalog.KBRemove{DocumentID: bobs.DocumentID}, intents.NotFound, "/document_id", nil},
		"of another scope":   {"kb.remove", catalog.KBRemove{DocumentID: mine.DocumentID, Scope: "tenant"}, intents.NotFound, "/document_id", nil},
		"another tenant":     {"kb.search", catalog.KBSearch{Q: "a", Filters: map[string]string{"tenant": "evil"}}, intents.RBACForbidden, "/filters/tenant", nil},
		"k 0":                {"kb.search", catalog.KBSearch{Q: "a", K: new(0)}, intents.MalformedArgs, "/k", nil},
		"k 51":               {"kb.search", catalog.KBSearch{Q: "a", K: new(51)}, intents.MalformedArgs, "/k", nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := as("acme", "ana", tt.typ, tt.args)
			if tt.change != nil {
				tt.change(&o)
			}
			r := b.Send(t, b.Sign(t, b.Fill(o)))
			if r.Code != tt.code || r.Retryable || pointerOf(t, r) != tt.pointer {
				t.Errorf("%+v", r)
			}
		})
	}
	if got := b.listed(t, "ana") + " " + b.listed(t, "bob"); got != "mine bobs" {
		t.Errorf("there is %s", got)
	}
	// The router refuses these earlier, and says where.
	for args, pointer := range map[string]string{
		`{"q":"a","k":0}`: "/k", `{"q":"a","k":51}`: "/k", `{"q":"a","filters":{"media_type":"image/png"}}`: "/filters/media_type",
	} {
		wrong(t, "kb.search", args, pointer)
	}
	wrong(t, "kb.index", `{"title":"t","data":"a","media_type":"image/png"}`, "/media_type")
	wrong(t, "kb.index", `{"title":"t","data":"a","media_type":"text/plain","metadata":{"Key":"a"}}`, "/metadata")
}

func wrong(t *testing.T, typ, args, pointer string) {
	t.Helper()
	row, _ := catalog.Builtin().Lookup(typ)
	s, err := row.ArgsSchema()
	if err != nil {
		t.Fatal(err)
	}
	if v := s.ValidateBytes([]byte(args)); len(v) == 0 || !strings.HasPrefix(v[0].Pointer, pointer) {
		t.Errorf("%s: %+v", args, v)
	}
}

// TestNewEmbedder: vectors of another embedder are compared with none, and are made again;
// meanwhile words find all.
func TestNewEmbedder(t *testing.T) { newEmbedder(t, embedded(t)) }

func newEmbedder(t *testing.T, docs storage.Documents) {
	t.Helper()
	on(t, docs, nil).index(t, "acme", "ana", plain("early", "The harbour opens at six."))
	on(t, docs, withHashed(t)).index(t, "acme", "ana", plain("old", "The harbours opened at six."))
	b := on(t, docs, func(c *knowledge.Config) { c.Embedder = renamed{hashed(t)} })
	ask := func() catalog.KBSearchResult { return b.search(t, catalog.KBSearch{Q: "harbour opens"}) }
	if got := ask(); titles(got) != "early" || got.Hits[0].Scores.Vector != 0 || got.Embedder != "other" {
		t.Errorf("before: %+v", got)
	}
	u := executors.Backfill{Documents: docs, Embedder: renamed{hashed(t)}, Indices: []executors.EmbeddedIndex{knowledge.Embedded}}
	for _, want := range []int{2, 0} {
		if n, err := u.Fill(t.Context(), "acme"); err != nil || n != want {
			t.Errorf("%d vectors, %v", n, err)
		}
	}
	if got := ask(); titles(got) != "early old" || got.Hits[0].Scores.Vector <= 0 || got.Hits[1].Scores.Vector <= 0 {
		t.Errorf("after: %+v", got)
	}
}

type renamed struct{ embed.HashEmbedder }

func (renamed) Name() string { return "other" }

// TestReranked: the reranker's scores decide, and one that fails changes nothing.
func TestReranked(t *testing.T) {
	status := http.StatusOK
	var asked struct {
		Model, Query string
		Documents    []string
		TopN         int `json:"top_n"`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/rerank" || r.Header.Get("Authorization") != "Bearer key" || json.NewDecoder(r.Body).Decode(&asked) != nil {
			status = http.StatusBadRequest
		}
		w.WriteHeader(status)
		var results []map[string]any
		for i, d := range asked.Documents { // the longest first, in an order of their own
			results = append(results, map[string]any{"index": i, "relevance_score": float64(len(d))})
		}
		slices.Reverse(results)
		_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
	}))
	t.Cleanup(server.Close)
	reranker, err := embed.NewReranker(embed.RerankConfig{BaseURL: server.URL + "/v1", Key: "key", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	b := on(t, embedded(t), func(c *knowledge.Config) { c.Embedder, c.Reranker = hashed(t), reranker })
	b.index(t, "acme", "ana", plain("short", "Harbour hours."))
	b.index(t, "acme", "ana", plain("long", "The hours of our harbour are those of the lock."))
	got := b.search(t, catalog.KBSearch{Q: "harbour hours", K: new(1)})
	if titles(got) != "long" || got.Reranker != "m" || got.Hits[0].Scores.Rerank == nil || got.Reason != "" {
		t.Errorf("%+v", got)
	}
	want := []string{"long\nThe hours of our harbour are those of the lock.", "short\nHarbour hours."}
	slices.Sort(asked.Documents)
	if d := cmp.Diff(want, asked.Documents); d != "" || asked.Model != "m" || asked.Query != "harbour hours" || asked.TopN != 2 {
		t.Errorf("asked %+v: %s", asked, d)
	}
	for s, reason := range map[int]string{http.StatusServiceUnavailable: "the reranker does not answer", http.StatusUnauthorized: "the reranker gives no scores"} {
		status = s
		if got := b.search(t, catalog.KBSearch{Q: "harbour hours"}); titles(got) != "short long" || got.Reranker != "" || got.Reason != reason {
			t.Errorf("%d: %+v", s, got)
		}
	}
}
