// Package storage holds the contracts of everything durable: the journal of
// records (the truth), documents and blobs. Drivers live below it (sqlite, blobdir);
// storagetest is the suite that each must pass.
package storage

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"iter"
	"regexp"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/intents"
)

// Kind is the kind of a record.
type Kind string

// The kinds of records.
const (
	KindIntent   Kind = "intent"   // a decision about a signed intent: allow, deny or hold
	KindOutcome  Kind = "outcome"  // how an intent ended
	KindRelease  Kind = "release"  // a held intent continues
	KindTakeover Kind = "takeover" // another attempt at an open intent begins
	KindControl  Kind = "control"  // genesis, reloads, counters
)

// Parts of a record. Each part is one JSON document.
const (
	PartEnvelope = "envelope"
	PartGrant    = "grant"
	PartDecision = "decision"
	PartInputs   = "facts"
	PartOutcome  = "outcome"
	PartRelease  = "release"
	PartTakeover = "takeover"
	PartControl  = "control"
)

// Record is one entry of the journal. Once committed it never changes, except that
// an Eraser takes parts away.
type Record struct {
	Position int64                      // from 0, gap-free; set by Commit
	Kind     Kind                       //
	At       time.Time                  // millisecond UTC, by the router's clock; never before an earlier record's
	Parts    map[string]json.RawMessage // part name to its bytes
	Salts    map[string][]byte          // part name to 32 random bytes; stays in the journal
	Erased   map[string]string          // name of a part that was erased to its part digest
}

// NewRecord salts the parts.
func NewRecord(kind Kind, at time.Time, parts map[string]json.RawMessage) Record {
	salts := make(map[string][]byte, len(parts))
	for name := range parts {
		salt := make([]byte, 32)
		_, _ = rand.Read(salt) // crypto/rand.Read never fails
		salts[name] = salt
	}
	return Record{Kind: kind, At: at.UTC().Truncate(time.Millisecond), Parts: parts, Salts: salts}
}

// Digest is the record's commitment: "sha256:" and the hex SHA-256
// over the JCS map of part name to hex SHA-256(salt ‖ part bytes). It does not
// depend on the position, so it is known before the record is committed, nor on
// whether parts have been erased.
func (r Record) Digest() string {
	if raw, ok := r.plainParts(); ok {
		return intents.Digest(raw)
	}
	parts := make(map[string]string, len(r.Parts)+len(r.Erased))
	for name, digest := range r.Erased {
		parts[name] = digest
	}
	for name, body := range r.Parts {
		parts[name] = PartDigest(r.Salts[name], body)
	}
	digest, err := DigestOf(parts)
	if err != nil {
		return "" // our own parts have plain names
	}
	return digest
}

// plainParts writes the RFC 8785 bytes of the map that Digest is over. ok is false where a name or
// the digest of an erased part is not of lower-case letters, digits and _: JSON escapes none of
// these, and their bytes and UTF-16 units have the same order.
func (r Record) plainParts() (raw []byte, ok bool) {
	var room [16]string
	names := room[:0]
	for name := range r.Parts {
		names = append(names, name)
	}
	for name, digest := range r.Erased {
		if !plain(digest) {
			return nil, false
		}
		if _, there := r.Parts[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	raw = append(make([]byte, 0, 96*len(names)+2), '{')
	for i, name := range names {
		if !plain(name) {
			return nil, false
		}
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(append(append(raw, '"'), name...), `":"`...)
		if body, there := r.Parts[name]; there {
			sum := PartSum(r.Salts[name], body)
			raw = hex.AppendEncode(raw, sum[:])
		} else {
			raw = append(raw, r.Erased[name]...)
		}
		raw = append(raw, '"')
	}
	return append(raw, '}'), true
}

func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// digestIn finds digests anywhere.
var digestIn = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// Digests are the digests anywhere in the record's parts, unordered, with
// repetitions.
func (r Record) Digests() (digests []string) {
	for _, part := range r.Parts {
		digests = append(digests, digestIn.FindAllString(string(part), -1)...)
	}
	return digests
}

// DigestOf is the record digest over part name to part digest. It fails for names or
// digests that are no I-JSON.
func DigestOf(parts map[string]string) (string, error) {
	raw, err := json.Marshal(parts)
	if err == nil {
		raw, err = intents.Canonical(raw)
	}
	return intents.Digest(raw), err
}

// Key names something that at most one intent may take: 128 bits of a digest over its
// length-prefixed parts. On a hit the caller compares the full key in the record that
// holds it.
type Key [16]byte

// KeySecret derives the secret of a log's idempotency keys from that of its tenants' tags. Both
// have 32 bytes.
func KeySecret(tags []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, tags, nil, "writ idempotency keys v1\n", sha256.Size)
}

// IntentKeys makes idempotency keys under the secret of a log. Safe for concurrent use.
type IntentKeys struct{ hashes sync.Pool }

// NewIntentKeys makes keys under a secret. Without one they are for comparisons in memory.
func NewIntentKeys(secret []byte) *IntentKeys {
	return &IntentKeys{sync.Pool{New: func() any { return &keyHash{Hash: hmac.New(sha256.New, secret)} }}}
}

// Key is the idempotency key, scoped to tenant, user and type: an HMAC-SHA-256 under the log's
// secret. A record keeps it for good, so without the secret nobody can confirm what the key was,
// which may hold a person's words.
func (k *IntentKeys) Key(tenant, user, typ, key string) Key {
	h := k.hashes.Get().(*keyHash) //nolint:forcetypeassert // New makes no other
	defer k.hashes.Put(h)
	return h.key("intent", tenant, user, typ, key)
}

// RefusalKey is the key of a refusal, so that it is recorded once per intent and
// code.
func RefusalKey(intentID, code string) Key {
	return (&keyHash{Hash: sha256.New()}).key("refusal", intentID, code)
}

// keyHash hashes the parts of keys, one key after the other.
type keyHash struct {
	hash.Hash
	room []byte
}

func (h *keyHash) key(parts ...string) Key {
	h.room = h.room[:0]
	for _, p := range parts {
		h.room = binary.BigEndian.AppendUint32(h.room, uint32(len(p))) //nolint:gosec // G115: parts are bounded by the 48 KiB envelope
		h.room = append(h.room, p...)
	}
	h.Reset()
	h.Write(h.room)
	h.room = h.Sum(h.room[:0])
	return Key(h.room[:16])
}

// NoPosition is the position of a subject that no record wrote and the holder of a free key.
const NoPosition int64 = -1

// Subject names one piece of state that decisions read, such as
// "plan/acme/plan_1". The journal retains the last position that wrote it.
type Subject string

// Assert states a read of a decision: the last record that wrote Subject
// is the one at At (Nobody: none did).
type Assert struct {
	Subject Subject
	At      int64
}

// Entry is one record of a commit with its key and its writes.
type Entry struct {
	Record Record
	// Key is taken if Take is set. Holder is the position that had it when the
	// decision was made (Nobody, or an intent whose retryable failure freed it):
	// if another position has it now, the commit is lost.
	Take   bool
	Key    Key
	Holder int64
	// Writes are the subjects that this record changes.
	Writes []Subject
	// Open reports that the intent waits for an outcome; Target is the intent that an
	// outcome, release or takeover is about (Nobody otherwise).
	Open   bool
	Target int64
	// TargetPrevious makes Target the position of the previous entry of the same commit:
	// an intent whose outcome is in the same commit.
	TargetPrevious bool
	// Refused reports that the intent was denied: no later record is about it.
	Refused bool
	// Decision and Summary are what these parts of an intent say, from who has just made them, so that an
	// observer need not read them; nil: it does. No driver stores them.
	Decision *intents.Decision
	Summary  *Summary
	// Lost reports, of a record that was read, that its erasable parts are missing although
	// nobody destroyed their key: that is damage, and no erasure.
	Lost bool
}

// RememberCommits is how many commit IDs a journal knows at any time. A retry comes
// within seconds; 65,536 commits are more than one second at full speed.
const RememberCommits = 1 << 16

// Commit is one durable compare-and-set over one or several records.
type Commit struct {
	ID string // random; losing to one's own ID is winning, while it is among the last RememberCommits
	// AsOf is the position after the last record that the decisions saw. Where what they
	// asserted may have left memory since (Window), the commit is stale.
	AsOf    int64
	Asserts []Assert
	Entries []Entry
}

// Verdict is what became of a commit.
type Verdict int

// The verdicts. Unknown comes with an error: the caller must answer IN_FLIGHT
// and never treat it as a denial.
const (
	Unknown Verdict = iota
	Won             // durable; Positions are set
	Lost            // Winner has a key (checked before Stale)
	Stale           // something asserted has changed: decide again
)

// Result of a commit.
type Result struct {
	Verdict   Verdict
	Positions []int64 // Won: one per entry
	Winner    int64   // Lost: the position that holds the key
	Entry     int     // Lost: the index of the entry that lost
}

// State of an intent.
type State string

// The states of an intent that took a key.
const (
	StateOpen State = "open" // committed, no outcome yet
	StateHeld State = "held" // waits for approval
	StateDone State = "done" // has its outcome
)

// Holder is the intent that holds a key.
type Holder struct {
	Position int64
	State    State
	Outcome  int64 // position of the outcome record; Nobody until StateDone
}

// ErrFull reports that free disk is below the floor: no new intent is accepted; outcomes
// still are.
var ErrFull = errors.New("storage: not enough free disk for new intents")

// ErrQuota reports that a tenant has reached its limit of bytes.
var ErrQuota = errors.New("storage: the tenant holds as many bytes as it may")

// ErrNotReady reports that something prevents the process from accepting new intents;
// outcomes are still accepted.
var ErrNotReady = errors.New("storage: no new intent is taken now")

// ErrFinished reports that the intent has an outcome already, or another attempt took
// it over.
var ErrFinished = errors.New("storage: intent already finished")

// ErrHeld reports that the intent waits for approval; only a commit releases or ends
// it.
var ErrHeld = errors.New("storage: intent is held")

// ErrNotFound reports that there is no such record, document or blob.
var ErrNotFound = errors.New("storage: not found")

// Journal is the append-only, linearizable log. Safe for concurrent use.
//
// Durability: when Commit, Finish or Take return without error their records
// survive a crash and a power cut. A crash before leaves either nothing or the
// whole commit, never a part of it. Cancelling the context stops the wait,
// never the write, so what was passed must not be changed afterwards. After a failed sync the process must exit: OnFatal of the
// driver is called and every later call fails.
//
// Time: a record whose time is before an earlier record's gets that one's, so that
// times ascend with positions whatever the clock does. What was decided when the
// clock differed has the decision's own time in its parts.
//
// Order: the observer given to the driver at opening sees every record exactly
// once, in position order, after it is durable and before the call that wrote
// it returns.
type Journal interface {
	// Lookup returns the holder of a key. Found false: the key is free, or its intent has
	// ended, and not as indeterminate, KeptFor ago or longer.
	Lookup(ctx context.Context, key Key) (h Holder, found bool, err error)
	// Holder returns the state of the intent at a position. ErrNotFound: no
	// record, or one that is no intent with a key, an opening or an outcome.
	Holder(ctx context.Context, position int64) (Holder, error)
	// Commit writes all entries or none. The checks are in this order: an ID that
	// was won before is won again; a taken key that another position than
	// Entry.Holder has, or one whose holder has no outcome, is lost; an assert
	// that is no longer true, or an entry whose intent is no longer in the state that it
	// needs (a release: held; a takeover: open; an outcome: open or held), is
	// stale; then ErrNotReady and ErrFull. Other errors with Unknown mean a malformed commit
	// (nothing was written), a cancelled wait, or a journal that failed.
	// An intent that takes its key and is neither open nor ended in its own
	// commit is held.
	Commit(ctx context.Context, c Commit) (Result, error)
	// Finish writes the outcome of an open intent; the first outcome wins and
	// any later one is ErrFinished. attempt must be the current attempt, else
	// ErrFinished. Writes are subjects that the outcome changes (a result of a
	// plan step). ErrNotFound where no intent is, ErrHeld for a held one.
	Finish(ctx context.Context, of int64, attempt int, outcome Record, writes []Subject) (int64, error)
	// Take begins another attempt at an open intent: it writes a takeover record
	// and returns the new attempt number. Attempts start at 1. Errors as Finish.
	Take(ctx context.Context, of int64, takeover Record) (attempt int, err error)
	// OpenIntents lists the positions of open intents with their attempt, in order.
	OpenIntents(ctx context.Context) ([]OpenIntent, error)
}

// Records reads the journal. Safe for concurrent use.
type Records interface {
	Get(ctx context.Context, position int64) (Record, error) // ErrNotFound
	// Scan yields records from a position in order, up to what was durable when it began.
	Scan(ctx context.Context, from int64) iter.Seq2[Record, error]
	// Next is the position that the next record will have.
	Next() int64
}

// OpenIntent is an intent without outcome.
type OpenIntent struct {
	Position int64
	Attempt  int
}

// Observer is called with every durable record in order: Position and Target are set,
// TargetPrevious is not. It is called by one goroutine, must not change
// the entry, and must not write to the journal that calls it. The effect of an entry is
// visible to Lookup and Holder after the observer has returned. See Journal.
type Observer func(e Entry)
