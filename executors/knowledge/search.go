package knowledge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/embed"
	"aob.dev/writ/storage"
)

const (
	defaultK = 5
	maxK     = 50
	// depth is how far down both lists are read.
	depth = 100
	// fusion is the constant of reciprocal rank fusion: it prevents the first of one list from
	// deciding alone.
	fusion = 60
	// rerankWait bounds how long an intent waits for a reranker.
	rerankWait = 10 * time.Second
)

// candidate is a chunk that a list has.
type candidate struct {
	record
	scores catalog.KBScores
}

// search finds chunks by words and by vectors, each list by the store, fuses both by the ranks and
// has the best ones reranked, if there is a reranker. Documents that the actor may not read are
// in no list, whatever the filters are.
func (k *knowledge) search(ctx context.Context, o *executors.Intent, args catalog.KBSearch) (*executors.Result, error) {
	limit := defaultK
	if args.K != nil {
		limit = *args.K
	}
	if limit < 1 || limit > maxK {
		return nil, refuse(intents.MalformedArgs, "/k", "k is 1 to 50")
	}
	where, err := conditions(o, args.Filters)
	if err != nil {
		return nil, err
	}
	out := catalog.KBSearchResult{Hits: []catalog.KBHit{}, By: []string{catalog.ByWords}}
	byWords := where
	byWords.Text = args.Q
	lists := make([][]candidate, 1, 2)
	if lists[0], err = k.read(ctx, o, byWords); err != nil {
		return nil, err
	}
	if args.Hybrid == nil || *args.Hybrid {
		near, reason, err := k.near(ctx, o, where, args.Q)
		if err != nil {
			return nil, err
		}
		if out.Reason = reason; reason == "" {
			lists = append(lists, near)
			out.By, out.Embedder = append(out.By, catalog.ByVectors), k.Embedder.Name()
		}
	}
	enough := limit
	if k.Reranker != nil {
		enough = maxK
	}
	found, err := k.living(ctx, o.Ticket.Actor.Tenant, fuse(lists), enough)
	if err != nil {
		return nil, err
	}
	if err := k.rerank(ctx, args.Q, found, &out); err != nil {
		return nil, err
	}
	result := &executors.Result{}
	for _, c := range found[:min(len(found), limit)] {
		result.Sources = append(result.Sources, c.Sources...)
		out.Hits = append(out.Hits, catalog.KBHit{
			DocumentID: c.DocumentID, ChunkID: c.ID, Chunk: c.Ordinal, Title: c.Title, Text: c.Text, MediaType: c.MediaType,
			Scope: c.scope(), Metadata: c.Metadata, Source: c.Source, Scores: c.scores,
		})
	}
	result.Value = out
	return result, nil
}

// members are the filters that are no metadata.
var members = []string{"tenant", "scope", "document_id", "media_type"}

// conditions of a search: the actor's, and the filters, which can only narrow them.
func conditions(o *executors.Intent, filters map[string]string) (storage.Query, error) {
	terms := map[string][]string{"kind": {kindChunk}, "reader": readers(o)}
	q := storage.Query{Terms: terms, Every: map[string][]string{}, Limit: depth}
	for name, value := range filters {
		switch name {
		case "tenant":
			if value != o.Ticket.Actor.Tenant {
				return q, refuse(intents.RBACForbidden, "/filters/tenant", "names another tenant than the actor's: leave it out")
			}
		case "scope":
			reader := o.Ticket.Actor.UserID
			if value == catalog.KnowledgeOfTenant {
				reader = everybody
			}
			terms["reader"] = []string{reader}
		case "document_id", "media_type":
			terms[name] = []string{value}
		default:
			q.Every["labels"] = append(q.Every["labels"], name+"="+value)
		}
	}
	return q, nil
}

// read is one list, best first. It looks again at whose chunks they are.
func (k *knowledge) read(ctx context.Context, o *executors.Intent, q storage.Query) ([]candidate, error) {
	page, err := k.Documents.Search(ctx, o.Ticket.Actor.Tenant, storage.IndexChunks, q)
	if err != nil {
		return nil, executors.Store(err)
	}
	var out []candidate
	for _, doc := range page.Documents {
		c := candidate{}
		if c.record, err = readRecord(doc); err != nil {
			return nil, err
		}
		if c.Tenant != o.Ticket.Actor.Tenant || !slices.Contains(readers(o), c.Reader) {
			continue
		}
		if q.Vector != nil {
			if doc.Score <= 0 {
				continue // it has nothing in common with the question
			}
			c.scores.Vector = min(doc.Score, 1)
		} else {
			c.scores.Words = len(out) + 1 // its weight would tell how often others have the words
		}
		out = append(out, c)
	}
	return out, nil
}

// near is the list by vectors, of those that this embedder has made; or the reason why
// there is none.
func (k *knowledge) near(ctx context.Context, o *executors.Intent, q storage.Query, text string) (list []candidate, reason string, err error) {
	vector, reason, err := embed.OneVector(ctx, k.Embedder, text, EmbedWait)
	if err != nil || reason != "" {
		return nil, reason, err
	}
	q.Terms["embedder"] = []string{k.Embedder.Name()}
	q.Vector = &storage.Vector{Member: "embedding", Values: vector}
	list, err = k.read(ctx, o, q)
	return list, "", err
}

// fuse joins lists by reciprocal rank, best first.
func fuse(lists [][]candidate) []candidate {
	at := map[string]int{}
	var out []candidate
	for _, list := range lists {
		for rank, c := range list {
			i, seen := at[c.ID]
			if !seen {
				i = len(out)
				at[c.ID], out = i, append(out, c)
			}
			s := &out[i].scores
			s.Words, s.Vector = max(s.Words, c.scores.Words), max(s.Vector, c.scores.Vector)
			s.Fused += 1 / float64(fusion+rank+1)
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(b.scores.Fused, a.scores.Fused) })
	return out
}

// living are the first chunks of live documents, as many as are enough: those of documents
// that are half written, or half removed, are left out.
func (k *knowledge) living(ctx context.Context, tenant string, found []candidate, enough int) (out []candidate, err error) {
	var ids []string // at most two lists of depth
	for _, c := range found {
		if !slices.Contains(ids, c.DocumentID) {
			ids = append(ids, c.DocumentID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	page, err := k.Documents.Search(ctx, tenant, storage.IndexChunks, storage.Query{
		Terms: map[string][]string{"id": ids, "kind": {kindDocument}, "state": {stateLive}}, Limit: len(ids),
	})
	if err != nil {
		return nil, executors.Store(err)
	}
	live := map[string]bool{}
	for _, doc := range page.Documents {
		live[doc.ID] = true
	}
	for _, c := range found {
		if live[c.DocumentID] && len(out) < enough {
			out = append(out, c)
		}
	}
	return out, nil
}

// rerank sorts the hits by the reranker. If it does not answer, nothing changes and the result says
// so.
func (k *knowledge) rerank(ctx context.Context, question string, found []candidate, out *catalog.KBSearchResult) error {
	if k.Reranker == nil || len(found) == 0 {
		return nil
	}
	texts := make([]string, len(found))
	for i, c := range found {
		texts[i] = c.embeddable()
	}
	wait, cancel := context.WithTimeout(ctx, rerankWait)
	defer cancel()
	scores, err := k.Reranker.Scores(wait, question, texts)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, embed.ErrUnavailable):
		out.Reason = cmp.Or(out.Reason, "the reranker does not answer")
		return nil
	case err != nil:
		out.Reason = cmp.Or(out.Reason, "the reranker gives no scores")
		return nil
	}
	for i := range found {
		found[i].scores.Rerank = &scores[i]
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(*b.scores.Rerank, *a.scores.Rerank) })
	out.Reranker = k.Reranker.Name()
	return nil
}
