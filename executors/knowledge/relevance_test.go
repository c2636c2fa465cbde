package knowledge_test

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"testing"

	"aob.dev/writ/executors/knowledge"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// relevance is a public set of questions with the documents that answer them, and the
// vectors of both; see testdata.
type relevance struct {
	Documents []struct{ Title, Text, Vector string }
	Queries   []struct {
		Q, Vector string
		Relevant  []int
	}
}

func readRelevance(tb testing.TB) (set relevance) {
	tb.Helper()
	f, err := os.Open("testdata/semanlink.json.gz")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&set); err != nil {
		tb.Fatal(err)
	}
	if len(set.Documents) != 314 || len(set.Queries) != 433 {
		tb.Fatalf("%d documents, %d queries", len(set.Documents), len(set.Queries))
	}
	return set
}

// model gives the vectors that a model has made before.
type model map[string][]float32

func (m model) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if out[i] = m[text]; out[i] == nil {
			return nil, fmt.Errorf("no vector of %q", text)
		}
	}
	return out, nil
}

func (model) Dimension() int { return dimension }
func (model) Name() string   { return "all-MiniLM-L6-v2" }

func (m model) add(tb testing.TB, text, vector string) {
	tb.Helper()
	raw, err := base64.StdEncoding.DecodeString(vector)
	if err != nil {
		tb.Fatal(err)
	}
	for _, b := range raw {
		m[text] = append(m[text], float32(int8(b)))
	}
}

// ndcg of the first ten: 1 if all that is relevant comes first.
func ndcg(found, relevant []string) float64 {
	var got, best float64
	for i := range 10 {
		gain := 1 / math.Log2(float64(i+2))
		if i < len(relevant) {
			best += gain
		}
		if i < len(found) && slices.Contains(relevant, found[i]) {
			got += gain
		}
	}
	return got / best
}

// hybridIsBest: over a public relevance set, with vectors of a model that knows the language,
// both lists together answer better than either of them. Every so many-th question is asked.
// settle is called between writing and asking.
func hybridIsBest(t *testing.T, docs storage.Documents, each int, refresh func()) {
	t.Helper()
	set, vectors := readRelevance(t), model{}
	for _, d := range set.Documents {
		vectors.add(t, d.Title+"\n"+d.Text, d.Vector)
	}
	for _, q := range set.Queries {
		vectors.add(t, q.Q, q.Vector)
	}
	b := on(t, docs, func(c *knowledge.Config) { c.Embedder = vectors })
	ids := make([]string, len(set.Documents))
	var adding sync.WaitGroup // writes of several at once share a sync
	for i, d := range set.Documents {
		o := as("acme", "ana", "kb.index", plain(d.Title, d.Text))
		o.Position = int64(1000 + i)
		adding.Go(func() {
			var got catalog.KBIndexResult
			if r := b.Do(t, o); r.Status != intents.Done || json.Unmarshal(r.Result, &got) != nil || got.Chunks != 1 || got.Embedder != vectors.Name() {
				t.Errorf("%s: %+v", d.Title, r)
			}
			ids[i] = got.DocumentID
		})
	}
	adding.Wait()
	refresh()
	var words, near, hybrid float64
	n := 0.0
	for i, q := range set.Queries {
		if i%each != 0 {
			continue
		}
		n++
		var relevant []string
		for _, at := range q.Relevant {
			relevant = append(relevant, ids[at])
		}
		both := b.search(t, catalog.KBSearch{Q: q.Q, K: new(10)})
		if len(both.By) != 2 || both.Embedder != vectors.Name() {
			t.Fatalf("%+v", both)
		}
		hybrid += ndcg(documentsOf(both), relevant)
		words += ndcg(documentsOf(b.search(t, catalog.KBSearch{Q: q.Q, K: new(10), Hybrid: new(false)})), relevant)
		near += ndcg(nearest(t, docs, vectors[q.Q]), relevant)
	}
	t.Logf("nDCG@10: words %.4f, vectors %.4f, hybrid %.4f", words/n, near/n, hybrid/n)
	if best := max(words, near); hybrid/n < best/n+0.02 || min(words, near)/n < 0.4 {
		t.Errorf("nDCG@10: words %.4f, vectors %.4f, hybrid %.4f", words/n, near/n, hybrid/n)
	}
}

func documentsOf(found catalog.KBSearchResult) (ids []string) {
	for _, h := range found.Hits {
		ids = append(ids, h.DocumentID)
	}
	return ids
}

// nearest are the documents by their vectors alone, which no intent asks for.
func nearest(t *testing.T, docs storage.Documents, vector []float32) (ids []string) {
	t.Helper()
	page, err := docs.Search(t.Context(), "acme", storage.IndexChunks, storage.Query{
		Terms: map[string][]string{"kind": {"chunk"}}, Vector: &storage.Vector{Member: "embedding", Values: vector}, Limit: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range page.Documents {
		var r struct {
			DocumentID string `json:"document_id"`
		}
		if err := json.Unmarshal(d.Body, &r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.DocumentID)
	}
	return ids
}

func TestHybridIsBest(t *testing.T) { hybridIsBest(t, embedded(t), 1, func() {}) }
