// Package opensearch stores documents in OpenSearch.
//
// # Indices
//
// An index of storage is an alias of that name over one index behind it, which
// `reindex` can replace:
//
//	agent_memory  →  agent_memory-000001
//
// Indices that only grow (storage.Appended) are cut by the month of their time,
// and found by pattern:
//
//	agent_events-2026.11, agent_events-2026.12, …
//
// A document's month follows from the document, so that one that is created again
// meets itself, in any order of writes; retention removes whole
// months. Mappings are strict and made from the JSON Schemas (storage.Fields).
//
// # Documents
//
// A stored document is the body with one leading member of ours:
//
//	{"writ": {"position": 17, "id": "acme:s1:t1:outlets"}, "id": …}
//
// Its _id is the tenant, "/", and the id; see key. Every read and every search
// adds the tenant.
//
// # Fences
//
// A get by id reads the last write. A write is a get, the fence, and a
// compare-and-set on the result of the get (_create, or if_seq_no and
// if_primary_term); a write that loses
// it starts again. A lost answer leaves it unknown
// whether the write took place: the caller gets storage.ErrUnavailable,
// and the same write again finds its own position and is done.
//
// # What a crash leaves
//
// Each document is written or not; the translog is synced before the answer. Of
// the documents of one Create some may be stored. Between template and index of a
// first start nothing is written, and the next start continues.
package opensearch
