// Package failpoint names the durable steps of a node, so that a test can kill it
// at each of them. In an ordinary build Hit does nothing, whatever the environment says. A
// program that was linked with -X aob.dev/writ/internal/failpoint.built=yes kills its own
// process, as kill -9 would, at the point that the environment names:
//
//	WRIT_FAILPOINT=intent.committed     at the first pass
//	WRIT_FAILPOINT=intent.committed:3   at the third
//	WRIT_FAILPOINT_AFTER=FILE          counted once the file exists
//
// docs/spec/journal.md describes the state after a crash at each point, and its repair.
package failpoint

// Point is a place between two durable steps.
type Point string

// The points, in the order in which an intent passes them.
const (
	GenesisKeys      Point = "genesis.keys"      // the keys are there, the log has not begun
	GenesisCommitted Point = "genesis.committed" // record 0 is durable

	BlobReceived Point = "blob.received" // the file is whole and synced, not in its place
	BlobRenamed  Point = "blob.renamed"  // in its place, its directory not synced
	BlobKept     Point = "blob.kept"     // durable, its name not returned

	JournalOpening   Point = "journal.opening"   // the file is open, nothing is read
	JournalReplayed  Point = "journal.replayed"  // all records are applied, nothing is accepted yet
	JournalJudged    Point = "journal.judged"    // a group is judged, nothing is written
	JournalRecords   Point = "journal.records"   // its records are in the transaction, its keys are not
	JournalCommits   Point = "journal.commits"   // all is in the transaction, which is not committed
	JournalDurable   Point = "journal.durable"   // synced; nobody has seen it
	JournalPublished Point = "journal.published" // applied; no caller was answered
	JournalAnswered  Point = "journal.answered"  // every caller was answered
	JournalCopied    Point = "journal.copied"    // the write-ahead log was copied into the database

	KeysMaking  Point = "keys.making"  // keys of erasable parts are in memory, nothing is written
	KeysMade    Point = "keys.made"    // their file is durable, none is used
	KeysErasing Point = "keys.erasing" // keys are overwritten, which is not synced
	KeysErased  Point = "keys.erased"  // the zeros are durable, not reported yet

	CopyWritten  Point = "copy.written"  // the copy of the keys is whole, and not in the place of the old one
	RestoreKeys  Point = "restore.keys"  // some of the keys are in the stage of a restore
	RestoreMoved Point = "restore.moved" // some of the stage is in its place

	IntentDecided   Point = "intent.decided"   // stages 1 to 7 have passed
	IntentCommitted Point = "intent.committed" // durable, nothing was sent
	IntentTicketed  Point = "intent.ticketed"  // its ticket is signed, not sent
	IntentReported  Point = "intent.reported"  // its executor has answered, the outcome is not durable
	IntentFinished  Point = "intent.finished"  // the outcome is durable, not reported yet
	StepFinished    Point = "step.finished"    // the step has ended, its files are not wiped

	BreakerChanged Point = "breaker.changed" // a breaker has another status, which is not stored

	ErasureAccepted Point = "erasure.accepted" // durable, nothing is erased
	ErasureBlobs    Point = "erasure.blobs"    // the blobs are gone, the parts are not
	ErasureDone     Point = "erasure.done"     // everything is erased, not reported yet

	TransientEnded Point = "transient.ended" // the plan's end is durable, the texts that came with its opening are there

	HoldReleased Point = "hold.released" // a held intent was released, nothing was sent
	NoticeSent   Point = "notice.sent"   // somebody was told of an approval, which is not stored
	StreamSent   Point = "stream.sent"   // records were streamed, how far is not stored

	RecoveryTaken Point = "recovery.taken" // a new attempt is durable, nothing was sent
	RecoveryEnded Point = "recovery.ended" // one of the intents left open has its outcome

	ExecutorDone Point = "executor.done" // the effect has happened, nobody knows

	DocumentWritten Point = "document.written" // in the transaction, which is not committed
	DocumentDurable Point = "document.durable" // synced, its writer was not answered
	MemoryLocked    Point = "memory.locked"    // the lock is taken, the memory is not written
	MemoryWritten   Point = "memory.written"   // the memory is durable, its writer was not answered
	SessionWritten  Point = "session.written"  // the session is durable, its writer was not answered

	LedgerAdded      Point = "ledger.added"      // leaves were given to the tree, which has not returned their indices
	LedgerIntegrated Point = "ledger.integrated" // the leaves are in the tree, no checkpoint says so
	LedgerSigned     Point = "ledger.signed"     // a checkpoint is signed, not published

	RecorderDocuments Point = "recorder.documents" // a batch of records is projected without its index entries
	RecorderIndex     Point = "recorder.index"     // all of a batch is projected
	RecorderReached   Point = "recorder.reached"   // and waiters were notified
	RecorderPurged    Point = "recorder.purged"    // the documents of an erased user are gone from an index, perhaps not from the next
)

// Variables of the environment: the point to die at, and from when on.
const (
	Variable = "WRIT_FAILPOINT"
	After    = "WRIT_FAILPOINT_AFTER"
)
