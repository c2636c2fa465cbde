// Package jetstream stores the journal of a cell in a JetStream stream, which one router of the cell
// writes at a time, and the keys of its erasable parts in another. On three servers a record is durable when two have synced it.
//
// # Streams
//
// A group of commits is one message of JOURNAL (journal.group), so it is stored whole or not
// at all. A file of 512 keys is one message of KEYS (keys.<n>, where n is the sequence that it
// was stored at first); package codec says what they encrypt. A router that leads from there on
// has stored a term (journal.term), which has no records.
//
// A group is a version byte (2); uvarint position of its first record; the commits
// (codec.AppendCommits) with their length; uvarint number of records, each a byte for its
// kind and its body (package codec) with its length. The header Writ-Router names
// the process that wrote it.
//
// # One order
//
// Each router keeps the state of all records in memory and follows the stream. One of them leads
// (Lead): it has stored a term, and writes. It judges a group against its state and publishes it with
// the sequence that the state has reached (Nats-Expected-Last-Sequence): the server stores it only if
// nothing was stored since. If anything was, another router has succeeded it, and its journal fails.
// So a stored group was judged by everything before it, and two routers never both win. A router that
// is behind, paused or cut off loses; it can never write on messages that it has not read.
//
// JetStream's own de-duplication is not used.
//
// # Where a record is
//
// A StreamIndex has the place of every 256th group, and finds others between two by search. The
// newest groups stay in memory. A process that has its StreamIndex in a snapshot opens with that
// and reads only later messages.
//
// # What a crash leaves
//
// A router that dies before it publishes leaves nothing. One that dies later leaves a whole
// group without an answer: callers find it by commit ID or key. A server that dies, or
// a leader that changes, may lose the answer to a publish but not what it acknowledged: the
// router publishes the same group at the same sequence again until it knows what is stored
// there. Meanwhile its callers wait, until their context ends.
//
// An erasure stores the file of keys anew, with zeros, and then makes the servers overwrite the
// old message. A crash between leaves both; erasing again overwrites it. A server's Raft log may
// retain the keys until it is compacted, which takes minutes and cannot be forced.
//
// The servers must run with sync_interval: always. Otherwise acknowledged writes may be lost
// when all of them lose power at once.
package jetstream
