package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// bucketPage is how many buckets one request asks for.
const bucketPage = 1000

// Aggregate counts what a query selects; see storage.Documents. The counts are
// exact, as buckets are walked in order and not ranked by shard.
func (d *Documents) Aggregate(ctx context.Context, tenant, index string, q storage.Query, a storage.Aggregation) ([]storage.Bucket, error) {
	list, err := d.aggregate(ctx, tenant, index, q, a)
	if err != nil {
		return nil, fmt.Errorf("aggregate %s: %w", index, err)
	}
	return list, nil
}

func (d *Documents) aggregate(ctx context.Context, tenant, index string, q storage.Query, a storage.Aggregation) ([]storage.Bucket, error) {
	by, _, err := a.Understand(index)
	if err != nil {
		return nil, err
	}
	if q.Vector != nil {
		return nil, errors.New("a vector selects no documents")
	}
	q.Sort, q.After, q.Limit = "", "", 0
	s, err := q.Understand(index)
	if err != nil {
		return nil, err
	}
	query, err := d.query(tenant, index, q, s)
	if err != nil || query == nil || s.Nothing {
		return nil, err
	}
	if a.By == "" {
		return d.total(ctx, index, query, a)
	}
	return d.walk(ctx, index, query, a, by)
}

func numbers(a storage.Aggregation) object {
	if a.ValueMember == "" {
		return object{}
	}
	return object{"numbers": object{"stats": object{"field": a.ValueMember}}}
}

// stats of a bucket; without values all but Count are null.
type stats struct {
	Count int64   `json:"count"`
	Sum   float64 `json:"sum"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	Avg   float64 `json:"avg"`
}

func (s stats) bucket(key string, count int64) storage.Bucket {
	return storage.Bucket{Key: key, Count: count, Values: s.Count, Sum: s.Sum, Min: s.Min, Max: s.Max, Avg: s.Avg}
}

func (d *Documents) total(ctx context.Context, index string, query object, a storage.Aggregation) ([]storage.Bucket, error) {
	answer, err := d.ask(ctx, index, object{"size": 0, "track_total_hits": true, "query": query, "aggs": numbers(a)})
	if err != nil || answer.Hits.Total.Value == 0 {
		return nil, err
	}
	var s stats
	if a.ValueMember != "" {
		if err := json.Unmarshal(answer.Aggregations["numbers"], &s); err != nil {
			return nil, err
		}
	}
	return []storage.Bucket{s.bucket("", answer.Hits.Total.Value)}, nil
}

// walk reads the buckets page by page.
func (d *Documents) walk(ctx context.Context, index string, query object, a storage.Aggregation, by storage.Field) ([]storage.Bucket, error) {
	source := object{"terms": object{"field": a.By}}
	var list []storage.Bucket
	for after := json.RawMessage(nil); ; {
		composite := object{"size": bucketPage, "sources": []object{{"key": source}}}
		if after != nil {
			composite["after"] = after
		}
		answer, err := d.ask(ctx, index, object{"size": 0, "track_total_hits": false, "query": query, "aggs": object{
			"buckets": object{"composite": composite, "aggs": numbers(a)},
		}})
		if err != nil {
			return nil, err
		}
		var page struct {
			After   json.RawMessage `json:"after_key"`
			Buckets []struct {
				Key struct {
					Key json.RawMessage `json:"key"`
				} `json:"key"`
				Count   int64 `json:"doc_count"`
				Numbers stats `json:"numbers"`
			} `json:"buckets"`
		}
		if raw, ok := answer.Aggregations["buckets"]; !ok {
			return list, nil // no index is there yet
		} else if err := json.Unmarshal(raw, &page); err != nil {
			return nil, err
		}
		for _, b := range page.Buckets {
			key, err := bucketKey(by, b.Key.Key)
			if err != nil {
				return nil, err
			}
			list = append(list, b.Numbers.bucket(key, b.Count))
		}
		if len(list) > storage.MaxBuckets {
			return nil, fmt.Errorf("more than %d buckets: narrow the query", storage.MaxBuckets)
		}
		if after = page.After; after == nil || len(page.Buckets) < bucketPage {
			return list, nil
		}
	}
}

func bucketKey(by storage.Field, raw json.RawMessage) (string, error) {
	switch by.Kind {
	case storage.Keyword:
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case storage.Date:
		var ms int64
		err := json.Unmarshal(raw, &ms)
		return intents.FormatTime(time.UnixMilli(ms)), err
	default:
		return string(raw), nil
	}
}

// Tenants are those that have documents in an index, for who looks at all of them.
func (d *Documents) Tenants(ctx context.Context, index string) ([]string, error) {
	list, err := d.walk(ctx, index, object{"match_all": object{}}, storage.Aggregation{By: "tenant_id"}, storage.Field{Kind: storage.Keyword})
	var out []string
	for _, b := range list {
		out = append(out, b.Key)
	}
	return out, err
}
