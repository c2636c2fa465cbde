package intents

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/schemas"
)

// TransientText is a text with the salt of its digest.
type TransientText struct {
	Salt []byte `json:"salt"` // 32 random bytes, in base64
	Text string `json:"text"`
}

// Transient are texts that travel beside the signed envelope, by name, in its member transient:
// the record loses them once their use has ended. The arguments sign their digests.
type Transient map[string]TransientText

// NewTransientText salts a text.
func NewTransientText(text string) TransientText {
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt)                                                      // never fails
	return TransientText{Salt: salt, Text: strings.ToValidUTF8(text, "\uFFFD")} // as JSON has it
}

// Digest is "sha256:" and the hex SHA-256 of the salt and the text, as those of parts of records are made.
func (t TransientText) Digest() string {
	sum := sha256.Sum256(slices.Concat(t.Salt, []byte(t.Text)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Digests returns the digests of the texts, by name; nil if there are none.
func (t Transient) Digests() map[string]string {
	if len(t) == 0 {
		return nil
	}
	out := make(map[string]string, len(t))
	for name, text := range t {
		out[name] = text.Digest()
	}
	return out
}

// Match compares texts with signed digests. The error is a *Refusal: SCHEMA_INVALID for a text
// without a digest or a digest without its text, SIGNATURE_INVALID for another text.
func (t Transient) Match(digests map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		switch digest, signed := digests[name]; {
		case !signed:
			return Refuse(SchemaInvalid, "/transient/"+name, "the arguments have no digest of this text")
		case digest != t[name].Digest():
			return Refuse(SignatureInvalid, "/transient/"+name, "is not the text whose digest was signed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		if _, there := t[name]; !there {
			return Refuse(SchemaInvalid, "/transient/"+name, "is missing: the arguments have its digest, and the text belongs beside sig")
		}
	}
	return nil
}

// Beside returns a signed envelope, in canonical form, with the texts beside it.
func (t Transient) Beside(signed []byte) ([]byte, error) {
	if len(t) == 0 {
		return signed, nil
	}
	texts, err := marshalCanonical(t)
	if err != nil {
		return nil, err
	}
	behind := []byte(`,"version":"` + Version + `"}`) // alone follows transient
	return slices.Concat(bytes.TrimSuffix(signed, behind), []byte(`,"transient":`), texts, behind), nil
}

// ReadTransient reads texts as a record has them.
func ReadTransient(raw []byte) (t Transient, err error) {
	err = json.Unmarshal(raw, &t)
	return t, err
}

// readTransient reads the member transient of an envelope.
func readTransient(v any) (Transient, error) {
	s, err := schemas.Lookup(schemas.Base + "transient.json")
	if err != nil {
		return nil, err
	}
	if violations := s.Validate(v); len(violations) > 0 {
		return nil, Invalid("/transient", violations)
	}
	var t taker
	texts := t.object(v)
	out := make(Transient, len(texts))
	for name, v := range texts {
		m := t.object(v)
		salt, err := rawB64.DecodeString(t.text(m["salt"]))
		if err != nil {
			return nil, Refuse(SchemaInvalid, "/transient/"+name+"/salt", "must be 32 bytes in base64")
		}
		out[name] = TransientText{Salt: salt, Text: t.text(m["text"])}
	}
	return out, nil
}

// Transient are the texts beside the envelope, as received: compare them first (Match). Do not modify.
func (e *Envelope) Transient() Transient { return e.u.transient }
