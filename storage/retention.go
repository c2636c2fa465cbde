package storage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/intents"
)

// Aged are the indices whose documents may be removed by age, with the member
// that the age is counted from. A document without it has no age and stays: a
// plan or a run that has not ended.
var Aged = map[string]string{
	IndexEvents: "ts", IndexIntents: "at", IndexPlans: "completed_at", IndexMessages: "created_at", IndexSessions: "last_active",
	IndexSkillCalls: "ts", IndexRuns: "finished_at", IndexMemory: "created_at", IndexMoments: "created_at", IndexWorkflows: "updated_at",
}

// MaxRetention is the longest one in days.
const MaxRetention = 36_500

// Retention is the number of days that documents of an index are retained. 0, or an index
// that is not named, means forever.
type Retention map[string]int

// ParseRetention reads {"agent_events": 90, …}; null is none. If it is no
// retention, pointer and reason say where and why.
func ParseRetention(raw json.RawMessage) (r Retention, pointer, reason string) {
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return nil, "", ""
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, "", "must be an object of index and days"
	}
	r = make(Retention, len(values))
	for index, value := range values {
		var days int
		switch err := json.Unmarshal(value, &days); {
		case Aged[index] == "" && slices.Contains(Indices, index):
			return nil, "/" + index, "documents of this index have no age"
		case Aged[index] == "":
			return nil, "", "names an index that is not there"
		case err != nil || days < 0 || days > MaxRetention:
			return nil, "/" + index, fmt.Sprintf("must be days, 1 to %d, or 0 for good", MaxRetention)
		}
		r[index] = days
	}
	return r, "", ""
}

// Older reports whether a document of an index is from before a time; never, if that is zero
// or the document has no age.
func Older(index string, body json.RawMessage, before time.Time) bool {
	member, ok := Aged[index]
	if !ok || before.IsZero() {
		return false
	}
	var members map[string]json.RawMessage
	var at time.Time
	if json.Unmarshal(body, &members) != nil || members[member] == nil || json.Unmarshal(members[member], &at) != nil {
		return false
	}
	return !at.IsZero() && at.Before(before)
}

// ownMemories begins the ids of documents in agent_memory that are no memories: locks and
// the record of the embedder. Ids of memories begin with the tenant, which has no colon.
const ownMemories = ":"

// OlderThan selects the documents of an index from before a time, as one or more
// queries for Purge.
func OlderThan(index string, before time.Time) []Query {
	bound := Range{LT: intents.FormatTime(before)}
	if index != IndexMemory {
		return []Query{{Ranges: map[string]Range{Aged[index]: bound}}}
	}
	after := string(ownMemories[0] + 1)
	return []Query{
		{Ranges: map[string]Range{Aged[index]: bound, "id": {LT: ownMemories}}},
		{Ranges: map[string]Range{Aged[index]: bound, "id": {GTE: after}}},
	}
}

// Retentions are the retention of each tenant's documents.
type Retentions interface {
	Tenants() []string
	// RetentionCutoff is the time before which documents of an index are removed; zero: none
	// are.
	RetentionCutoff(tenant, index string, now time.Time) time.Time
}

// Younger are the documents of an index without those from before a time.
func Younger(index string, docs []Document, before time.Time) []Document {
	if before.IsZero() {
		return docs
	}
	return slices.DeleteFunc(slices.Clone(docs), func(d Document) bool { return Older(index, d.Body, before) })
}

// RemoveAged removes memories that have expired, and documents that are older than their
// tenants' retentions; of the latter only those that were removed one by one are counted.
// It continues after an error.
func RemoveAged(ctx context.Context, docs Documents, kept Retentions, now time.Time) (expired, old int, failed error) {
	expired, err1 := removeExpired(ctx, docs, kept.Tenants(), now)
	old, err2 := removeOutdated(ctx, docs, kept, now)
	return expired, old, errors.Join(err1, err2)
}

func removeExpired(ctx context.Context, docs Documents, tenants []string, now time.Time) (removed int, failed error) {
	over := Query{Ranges: map[string]Range{"ttl_at": {LT: now.UTC().Format(time.RFC3339Nano)}}}
	for _, tenant := range tenants {
		n, err := docs.Purge(ctx, tenant, IndexMemory, over)
		removed += n
		failed = errors.Join(failed, err)
	}
	return removed, failed
}

// dropper is a store that removes what is old of an index, of all tenants, without
// reading it.
type dropper interface {
	DropBefore(ctx context.Context, index string, before time.Time) ([]string, error)
}

func removeOutdated(ctx context.Context, docs Documents, kept Retentions, now time.Time) (removed int, failed error) {
	tenants := kept.Tenants()
	for _, index := range slices.Sorted(maps.Keys(Aged)) {
		failed = errors.Join(failed, dropOutdated(ctx, docs, kept, index, now))
		for _, tenant := range tenants {
			before := kept.RetentionCutoff(tenant, index, now)
			if before.IsZero() {
				continue
			}
			for _, q := range OlderThan(index, before) {
				n, err := docs.Purge(ctx, tenant, index, q)
				removed += n
				failed = errors.Join(failed, err)
			}
		}
	}
	return removed, failed
}

// dropOutdated removes what is too old for every tenant, if the store can.
func dropOutdated(ctx context.Context, docs Documents, kept Retentions, index string, now time.Time) error {
	store, ok := docs.(dropper)
	if _, appended := Appended[index]; !ok || !appended {
		return nil
	}
	before := now
	for _, tenant := range kept.Tenants() {
		t := kept.RetentionCutoff(tenant, index, now)
		if t.IsZero() {
			return nil
		}
		if t.Before(before) {
			before = t
		}
	}
	_, err := store.DropBefore(ctx, index, before)
	return err
}
