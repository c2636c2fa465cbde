// Package sqlite stores the journal and the documents of one machine in SQLite.
//
// # Files
//
// The journal is one database, journal.db, in a directory that one process uses at a
// time (the caller locks the directory). Documents have a
// database and a writer of their own, so that a search index never slows an
// intent down. Both are opened with write-ahead logging and a sync on every
// commit, and are readable by their owner only.
//
// # Journal format
//
//	records(position, kind, body)   one row per record, appended, never changed
//	commits(first, ids)             one row per group of commits that carried IDs
//
// Package codec defines a body. The erasable parts of a record are encrypted in it, under a
// key that stands in a key file. An erasure overwrites the key with zeros.
//
// Key files are in the directory erasable beside the journal's, 0000000001 and so on, each with
// 4,096 keys of 32 bytes.
//
// A row of commits belongs to the records from position first on. ids is a sequence of
// uvarint offset, uvarint number of records, the commit ID with its length.
//
// The key of an intent follows from its parts and is stored nowhere else. Keys
// are held in memory: any index over random keys dirties about one page per key, which at a
// million records is the main cost.
//
// # What a crash leaves
//
// A group of commits is one transaction. Before its last frame is synced the
// write-ahead log holds frames without a commit mark: the next opening ignores
// them, and no caller has an answer. After the sync, every record of the group
// is stored; a caller that had no answer yet asks again with its commit ID, or
// looks its key up. A crash inside a checkpoint leaves the write-ahead log
// complete, and the checkpoint is done again. A key file gets its name once it is whole and synced,
// before its first key is used; a crash wastes the keys that are left.
package sqlite
