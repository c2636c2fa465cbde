package ledger

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/transparency-dev/formats/log"
	"golang.org/x/mod/sumdb/note"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/failpoint"
)

// MaxCheckpoint bounds the text of a checkpoint with its signatures.
const MaxCheckpoint = 16 << 10

// Checkpoint is a signed statement about the whole log (C2SP tlog-checkpoint):
// so many leaves, this root.
type Checkpoint struct {
	Origin string
	Size   int64
	Root   []byte // of the Merkle tree (RFC 6962)
	Note   string // the text with its signatures, as published
	KID    string // of the ledger key that signed it
}

// NoteSigner signs checkpoints with the ledger key of the key set. Its name is
// the log's origin, so the vkey that clients use follows from origin and key.
func NoteSigner(origin string, key intents.Signer) (note.Signer, error) {
	if key.Role != intents.RoleLedger {
		return nil, fmt.Errorf("ledger: key has role %q", key.Role)
	}
	s := &noteSigner{origin: origin, key: key}
	_, err := s.choose()
	return s, err
}

// noteSigner signs with the key that signs now. note.Sign asks for the hash of
// the key and then for the signature: the first chooses the key for both. One
// note is signed at a time.
type noteSigner struct {
	origin string
	key    intents.Signer

	mu  sync.Mutex // guards now
	now intents.Signer
}

func (s *noteSigner) choose() (hash uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.key.Now()
	v, err := NoteVerifier(s.origin, s.now.Public())
	if err != nil {
		return 0, err
	}
	return v.KeyHash(), nil
}

// Name of the log.
func (s *noteSigner) Name() string { return s.origin }

// KeyHash of the key that the next signature is made with; 0, which no verifier
// has, where it cannot be used.
func (s *noteSigner) KeyHash() uint32 {
	hash, err := s.choose()
	if err != nil {
		return 0
	}
	return hash
}

// Sign implements note.Signer.
func (s *noteSigner) Sign(msg []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	signature, err := s.now.Key.Sign(rand.Reader, msg, crypto.Hash(0))
	failpoint.Hit(failpoint.LedgerSigned)
	return signature, err
}

// VKey is the text by which other tools know the log's key (C2SP signed-note).
func VKey(origin string, public ed25519.PublicKey) (string, error) {
	return note.NewEd25519VerifierKey(origin, public)
}

// NoteVerifier checks signatures of a ledger key.
func NoteVerifier(origin string, public ed25519.PublicKey) (note.Verifier, error) {
	vkey, err := VKey(origin, public)
	if err != nil {
		return nil, err
	}
	return note.NewVerifier(vkey)
}

// OpenCheckpoint verifies a checkpoint of a log with one of its ledger keys.
func OpenCheckpoint(text, origin string, keys ...intents.Key) (Checkpoint, error) {
	if len(text) > MaxCheckpoint {
		return Checkpoint{}, errors.New("checkpoint is too long")
	}
	for _, key := range keys {
		if key.Role != intents.RoleLedger {
			continue
		}
		v, err := NoteVerifier(origin, key.Public)
		if err != nil {
			return Checkpoint{}, err
		}
		n, err := note.Open([]byte(text), note.VerifierList(v))
		if err != nil {
			continue
		}
		c, err := readCheckpoint(n.Text)
		if err != nil {
			return c, err
		}
		if c.Origin != origin {
			return c, errors.New("checkpoint is another log's")
		}
		c.Note, c.KID = text, key.KID
		return c, nil
	}
	return Checkpoint{}, errors.New("checkpoint is not signed by a ledger key of the log")
}

// readCheckpoint reads the signed text: three lines, no extensions.
func readCheckpoint(text string) (Checkpoint, error) {
	var c log.Checkpoint
	rest, err := c.Unmarshal([]byte(text))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: %v", err)
	}
	if len(rest) > 0 || c.Size > math.MaxInt64 || len(c.Hash) != sha256.Size || string(c.Marshal()) != text {
		return Checkpoint{}, errors.New("checkpoint is not origin, size and root")
	}
	return Checkpoint{Origin: c.Origin, Size: int64(c.Size), Root: c.Hash}, nil
}

// ReadCheckpoint reads a checkpoint and believes it. OpenCheckpoint does not.
func ReadCheckpoint(text string) (Checkpoint, error) {
	i := strings.Index(text, "\n\n")
	if i < 0 {
		return Checkpoint{}, errors.New("checkpoint is not a signed note")
	}
	c, err := readCheckpoint(text[:i+1])
	c.Note = text
	return c, err
}

// sign makes the checkpoint of a size and root. It states nothing that the log
// has not stated: the tree of an earlier size follows from the tree of today.
func sign(origin string, size int64, root []byte, key intents.Signer) (Checkpoint, error) {
	s, err := NoteSigner(origin, key)
	if err != nil {
		return Checkpoint{}, err
	}
	text := log.Checkpoint{Origin: origin, Size: uint64(size), Hash: root}.Marshal() //nolint:gosec // G115: not negative
	signed, err := note.Sign(&note.Note{Text: string(text)}, s)
	if err != nil {
		return Checkpoint{}, err
	}
	return Checkpoint{Origin: origin, Size: size, Root: root, Note: string(signed), KID: key.Now().KID}, nil
}
