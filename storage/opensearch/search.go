package opensearch

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// Search selects documents among those that the server has made visible, about a
// second after they were written; see storage.Documents.
func (d *Documents) Search(ctx context.Context, tenant, index string, q storage.Query) (storage.Page, error) {
	hits, cursor, err := d.search(ctx, tenant, index, q)
	if err != nil {
		return storage.Page{}, fmt.Errorf("search %s: %w", index, err)
	}
	page := storage.Page{Cursor: cursor}
	for _, hit := range hits {
		doc, err := hit.document()
		if err != nil {
			return storage.Page{}, fmt.Errorf("search %s: %w", index, err)
		}
		if hit.Score != nil {
			doc.Score = *hit.Score
		}
		if q.Vector != nil {
			doc.Score = 2*doc.Score - 1 // the server returns (1 + cosine) / 2
		}
		page.Documents = append(page.Documents, doc)
	}
	return page, nil
}

func (d *Documents) search(ctx context.Context, tenant, index string, q storage.Query) ([]*storedDocument, string, error) {
	s, err := q.Understand(index)
	if err != nil {
		return nil, "", err
	}
	query, err := d.query(tenant, index, q, s)
	if err != nil {
		return nil, "", err
	}
	order := sorting(q, s)
	body := object{
		"query": query, "sort": order, "size": s.Limit + 1, "track_scores": q.Vector != nil || q.Text != "",
		"track_total_hits": false, "seq_no_primary_term": true,
	}
	if q.Vector != nil {
		body["size"] = s.Limit
	}
	if q.After != "" {
		if body["search_after"], err = parseCursor(q.After, len(order)); err != nil {
			return nil, "", err
		}
	}
	if s.Nothing || query == nil {
		return nil, "", nil
	}
	answer, err := d.ask(ctx, index, body)
	if err != nil {
		return nil, "", err
	}
	hits := answer.Hits.Hits
	if len(hits) <= s.Limit {
		return hits, "", nil
	}
	return hits[:s.Limit], base64.RawURLEncoding.EncodeToString(hits[s.Limit-1].Sort), nil
}

// searchResponse is the answer to a search.
type searchResponse struct {
	TimedOut bool `json:"timed_out"`
	Shards   struct {
		Failed int `json:"failed"`
	} `json:"_shards"`
	Hits struct {
		Total struct {
			Value int64 `json:"value"`
		} `json:"total"`
		Hits []*storedDocument `json:"hits"`
	} `json:"hits"`
	Aggregations map[string]json.RawMessage `json:"aggregations"`
}

// ask searches all shards or fails: a part of the answer is none.
func (d *Documents) ask(ctx context.Context, index string, body object) (*searchResponse, error) {
	var answer searchResponse
	err := d.call(ctx, request{
		method: http.MethodPost, path: "/" + d.target(index) + "/_search", body: body, repeat: true,
		query: url.Values{"allow_partial_search_results": {"false"}},
	}, &answer)
	if err == nil && (answer.TimedOut || answer.Shards.Failed > 0) {
		err = fmt.Errorf("%w: opensearch: %d shards failed", storage.ErrUnavailable, answer.Shards.Failed)
	}
	return &answer, err
}

// query is nil where nothing can be found.
func (d *Documents) query(tenant, index string, q storage.Query, s storage.Selection) (object, error) {
	fields, err := storage.Fields(index)
	if err != nil {
		return nil, err
	}
	restricted := object{"filter": conditions(tenant, s)}
	if !s.Now.IsZero() && slices.ContainsFunc(fields, func(f storage.Field) bool { return f.Name == "ttl_at" }) {
		restricted["must_not"] = []object{{"range": object{"ttl_at": object{"lt": intents.FormatTime(s.Now)}}}}
	}
	switch {
	case q.Vector != nil:
		if len(q.Vector.Values) != d.cfg.Dimension {
			return nil, fmt.Errorf("the vector has %d numbers, and the store is made for %d", len(q.Vector.Values), d.cfg.Dimension)
		}
		return object{"knn": object{q.Vector.Member: object{
			"vector": q.Vector.Values, "k": s.Limit, "filter": object{"bool": restricted},
		}}}, nil
	case q.Text != "":
		words := strings.Join(storage.Words(q.Text), " ")
		match := object{"query": words}
		if q.Fuzzy { // AUTO is storage.Edits
			match = object{"query": words, "fuzziness": "AUTO", "prefix_length": 1, "max_expansions": storage.MaxSpellings}
		}
		clauses := matches("", fields, match)
		if words == "" || len(clauses) == 0 {
			return nil, nil //nolint:nilnil // nothing is an answer
		}
		restricted["should"], restricted["minimum_should_match"] = clauses, 1
	}
	return object{"bool": restricted}, nil
}

// conditions hold for every document that is found; the tenant is the first.
func conditions(tenant string, s storage.Selection) []object {
	list := []object{{"term": object{"tenant_id": tenant}}}
	for _, t := range s.Terms {
		list = append(list, object{"terms": object{t.Field.Name: t.Values}})
	}
	for _, r := range s.Ranges {
		bounds := object{}
		for name, value := range map[string]any{"gte": r.GTE, "gt": r.GT, "lte": r.LTE, "lt": r.LT} {
			if value != nil {
				bounds[name] = value
			}
		}
		list = append(list, object{"range": object{r.Field.Name: bounds}})
	}
	if s.Before != 0 {
		list = append(list, object{"range": object{own + ".position": object{"lt": s.Before}}})
	}
	return list
}

// matches asks for words in every text member, at any depth.
func matches(path string, fields []storage.Field, match object) (list []object) {
	for _, f := range fields {
		name := path + f.Name
		switch f.Kind {
		case storage.Text:
			list = append(list, object{"match": object{name: match}})
		case storage.Object:
			list = append(list, matches(name+".", f.Fields, match)...)
		case storage.Nested:
			if inner := matches(name+".", f.Fields, match); len(inner) > 0 {
				list = append(list, object{"nested": object{"path": name, "score_mode": "sum", "query": object{"bool": object{"should": inner}}}})
			}
		default:
		}
	}
	return list
}

// sorting is total: an id is unique in a tenant's index.
func sorting(q storage.Query, s storage.Selection) []object {
	order := "asc"
	if s.Descending {
		order = "desc"
	}
	position, id := own+".position", own+".id"
	switch {
	case q.Text != "" || q.Vector != nil:
		return []object{{"_score": "desc"}, {id: "asc"}}
	case s.ByPosition:
		return []object{{position: order}, {id: order}}
	case s.Sort == nil:
		return []object{{position: "asc"}, {id: "asc"}}
	default:
		return []object{{s.Sort.Name: object{"order": order, "missing": "_last"}}, {position: "asc"}, {id: "asc"}}
	}
}

var errCursor = errors.New("malformed cursor")

// parseCursor reads the sort values of the last document of a page.
func parseCursor(s string, length int) ([]any, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, errCursor
	}
	var values []any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&values); err != nil || dec.More() || len(values) != length {
		return nil, errCursor
	}
	for _, v := range values {
		switch v.(type) {
		case nil, bool, string, json.Number:
		default:
			return nil, errCursor
		}
	}
	return values, nil
}

var _ storage.Refresher = (*Documents)(nil)

// Refresh makes what was written before visible; see storage.Refresher. It costs
// little where nothing was.
func (d *Documents) Refresh(ctx context.Context, indices ...string) error {
	return d.call(ctx, request{method: http.MethodPost, path: "/" + d.targets(indices) + "/_refresh", repeat: true}, nil)
}

// purgePage is how many documents are removed at a time.
const purgePage = 500

// Purge removes what a query selects; see storage.Documents. Each document is
// removed as it was found: one that was written since stays.
func (d *Documents) Purge(ctx context.Context, tenant, index string, q storage.Query) (int, error) {
	if q.Vector != nil {
		return 0, errors.New("purge: a vector selects no documents")
	}
	_, months := storage.Appended[index]
	total := 0
	for q.Limit = purgePage; ; {
		hits, cursor, err := d.search(ctx, tenant, index, q)
		if err != nil {
			return total, fmt.Errorf("purge %s: %w", index, err)
		}
		var b bulk
		for _, hit := range hits {
			err := b.add("delete", object{"_index": hit.Index, "_id": hit.Key, "if_seq_no": hit.SeqNo, "if_primary_term": hit.Term}, nil)
			if err != nil {
				return total, err
			}
		}
		done, _, err := d.bulk(ctx, index, &b)
		total += done
		if err != nil && !(months && isIndexNotFound(err)) { // a month that was removed meanwhile has none
			return total, fmt.Errorf("purge %s: %w", index, err)
		}
		if cursor == "" {
			return total, nil
		}
		q.After = cursor
	}
}
