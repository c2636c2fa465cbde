package intents

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// Limits of a batch. MaxBatchSize is in bytes as received, and what
// a message of the bus can hold.
const (
	MaxBatch     = 100
	MaxBatchSize = 1 << 20
)

// BatchAnswer is the answer to the submitter of a batch. Without answers nothing was
// accepted, and the embedded fault describes the failure of the intent that stopped it.
type BatchAnswer struct {
	Code    Code      `json:"code"`              // OK: all are done; else of the intent that stopped it
	Index   *int      `json:"index,omitempty"`   // of that intent, from 0
	Pointer string    `json:"pointer,omitempty"` // into the batch: /intents/<index>/…
	Reason  string    `json:"reason,omitempty"`
	Hint    string    `json:"hint,omitempty"`
	Answers []*Answer `json:"answers,omitempty"` // one per intent, in order
	Fault   *Answer   `json:"fault,omitempty"`
}

// BatchRef records in a decision that the intent was accepted as one of a batch.
type BatchRef struct {
	Index  int   `json:"index"`  // in the batch, from 0
	Offset int64 `json:"offset"` // of its record from the first of the batch
	// Size is the number of intents accepted with one commit, without those of the batch
	// that were submitted before.
	Size int `json:"of"`
}

// BatchPointer points at a member of an intent of a batch; pointer is into the intent.
func BatchPointer(index int, pointer string) string {
	return "/intents/" + strconv.Itoa(index) + pointer
}

// ParseBatch splits {"atomic": true, "intents": [...]} and returns each envelope
// as the bytes received, for Parse to check. The error is a *Refusal
// with SCHEMA_INVALID or PAYLOAD_TOO_LARGE.
func ParseBatch(raw []byte) ([][]byte, error) {
	if len(raw) > MaxBatchSize {
		return nil, Refuse(PayloadTooLarge, "", "a batch has at most 1048576 bytes")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	b := batchReader{dec: dec}
	if err := b.read(); err != nil {
		var refusal *Refusal
		if errors.As(err, &refusal) {
			return nil, err
		}
		return nil, Refuse(SchemaInvalid, "", "the batch is not JSON")
	}
	switch {
	case !b.atomic:
		return nil, Refuse(SchemaInvalid, "/atomic", `must be true: all intents of a batch are accepted or none`)
	case len(b.intents) == 0:
		return nil, Refuse(SchemaInvalid, "/intents", "a batch has 1 to 100 intents")
	}
	return b.intents, nil
}

// batchReader reads a batch token by token: its members are known, and each
// comes once.
type batchReader struct {
	dec     *json.Decoder
	intents [][]byte
	atomic  bool
	seen    map[string]bool
}

func (b *batchReader) read() error {
	if t, err := b.dec.Token(); err != nil || t != json.Delim('{') {
		return Refuse(SchemaInvalid, "", `a batch is a JSON object {"atomic": true, "intents": [...]}`)
	}
	b.seen = map[string]bool{}
	for b.dec.More() {
		t, err := b.dec.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // a member's name always is one
		if b.seen[name] {
			return Refuse(SchemaInvalid, "", "a member of the batch comes twice")
		}
		b.seen[name] = true
		if err := b.member(name); err != nil {
			return err
		}
	}
	if _, err := b.dec.Token(); err != nil {
		return err
	}
	if _, err := b.dec.Token(); !errors.Is(err, io.EOF) {
		return Refuse(SchemaInvalid, "", "something follows the batch")
	}
	return nil
}

func (b *batchReader) member(name string) error {
	switch name {
	case "atomic":
		t, err := b.dec.Token()
		b.atomic = t == true
		return err
	case "intents":
		return b.list()
	default:
		return Refuse(SchemaInvalid, "", "a batch has the members atomic and intents")
	}
}

func (b *batchReader) list() error {
	if t, err := b.dec.Token(); err != nil || t != json.Delim('[') {
		return Refuse(SchemaInvalid, "/intents", "must be an array of signed intents")
	}
	for b.dec.More() {
		if len(b.intents) == MaxBatch {
			return Refuse(PayloadTooLarge, "/intents", "a batch has at most 100 intents")
		}
		var intent json.RawMessage
		if err := b.dec.Decode(&intent); err != nil {
			return err
		}
		b.intents = append(b.intents, intent)
	}
	_, err := b.dec.Token()
	return err
}
