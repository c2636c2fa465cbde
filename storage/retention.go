package storage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Aged are the indices whose documents may be removed by age, with the member
// that the age is counted from. A document without it has no age and stays: a
// plan or a run that has not ended.
var Aged = map[string]string{
	IndexEvents: "ts", IndexOrders: "at", IndexPlans: "completed_at", IndexMessages: "created_at", IndexSessions: "last_active",
	IndexSkillCalls: "ts", IndexRuns: "finished_at", IndexMemory: "created_at", IndexMoments: "created_at",
}

// MaxRetention is the longest one in days.
const MaxRetention = 36_500

// Retention says for how many days documents of an index are kept. 0, or an index
// that is not named, means for good.
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

// Older says whether a document of an index is from before a time; never, if that is zero
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
	bound := Range{LT: FormatTime(before)}
	if index != IndexMemory {
		return []Query{{Ranges: map[string]Range{Aged[index]: bound}}}
	}
	after := string(ownMemories[0] + 1)
	return []Query{
		{Ranges: map[string]Range{Aged[index]: bound, "id": {LT: ownMemories}}},
		{Ranges: map[string]Range{Aged[index]: bound, "id": {GTE: after}}},
	}
}
