// Package jetstream keeps the journal of a cell in one JetStream stream, which the routers
// of the cell write together. On three servers a record is there when two have synced it.
//
// # Stream
//
// A group of commits is one message, so it is there whole or not at all:
//
//	journal.group           a group
//	journal.erased.<seq>    the group that had sequence seq, without parts that were erased
//
// A group is a version byte (1); uvarint position of its first record; the keys taken and
// the commits (codec.KeyRow), each with its length; uvarint number of records, each a byte
// for its kind and its body (package codec) with its length. The header Writ-Router names
// the process that wrote it at first.
//
// # One order
//
// Each router keeps the fold of all records in memory and follows the stream. It judges a
// group against that fold and publishes it with the sequence that the fold has reached
// (Nats-Expected-Last-Sequence): the server stores it only where nothing was stored since.
// If another router was first, it follows, and judges again. So what is stored was judged by
// all that is before it, and two routers never both win. A router that is behind, paused or
// cut off loses; it can never write on what it has not seen.
//
// JetStream's own de-duplication is not used.
//
// # Where a record is
//
// A Fold knows the place of every 256th group, and finds others between two by search. The
// newest groups stay in memory. A process that keeps its Fold in a snapshot opens with that
// and reads only what is behind it.
//
// # What a crash leaves
//
// A router that dies before it publishes leaves nothing. One that dies later leaves a whole
// group that nobody was told of: callers find it by commit ID or key. A server that dies, or
// a leader that changes, may lose the answer to a publish but not what it acknowledged: the
// router publishes the same group at the same sequence again until it knows what stands
// there. Meanwhile its callers wait, as long as they like.
//
// An erasure stores the group without the parts, and then has the servers overwrite the old
// message. A crash between leaves both; to erase again overwrites it. A server's Raft log may
// keep the bytes until it is compacted, which is minutes, and nothing can hurry that.
//
// The servers must run with sync_interval: always. Otherwise what is acknowledged may be lost
// when all of them lose their power at once.
package jetstream
