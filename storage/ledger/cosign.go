package ledger

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"aob.dev/writ/intents"
)

// algCosignature is the type of keys that make timestamped Ed25519 cosignatures
// (C2SP tlog-cosignature, cosignature/v1).
const algCosignature = 0x04

// WitnessKey verifies the cosignatures of one witness.
type WitnessKey struct {
	name   string
	hash   uint32
	public ed25519.PublicKey
}

var _ note.Verifier = (*WitnessKey)(nil)

// ParseWitnessKey reads a verifier key: <name>+<hash in hex>+<base64 of 0x04 and
// the public key>.
func ParseWitnessKey(vkey string) (*WitnessKey, error) {
	name, rest, _ := strings.Cut(vkey, "+")
	hash, encoded, ok := strings.Cut(rest, "+")
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || len(key) != 1+ed25519.PublicKeySize || name == "" || strings.ContainsAny(name, " \n\t") {
		return nil, errors.New("witness key is not <name>+<hash>+<key>")
	}
	if key[0] != algCosignature {
		return nil, fmt.Errorf("witness key of %s is of type 0x%02x, not a cosignature's 0x04", name, key[0])
	}
	k := &WitnessKey{name: name, public: key[1:]}
	if k.hash = keyHash(name, key); hash != fmt.Sprintf("%08x", k.hash) {
		return nil, fmt.Errorf("witness key of %s has another hash", name)
	}
	return k, intents.AdmitKey(k.public)
}

// keyHash as C2SP signed-note has it.
func keyHash(name string, key []byte) uint32 {
	h := sha256.New()
	h.Write([]byte(name)) // never fails
	h.Write([]byte("\n"))
	h.Write(key)
	return binary.BigEndian.Uint32(h.Sum(nil))
}

// Name of the witness.
func (k *WitnessKey) Name() string { return k.name }

// KeyHash names the key in a note.
func (k *WitnessKey) KeyHash() uint32 { return k.hash }

// Verify a cosignature over the text of a checkpoint: eight bytes of Unix time and
// the signature over that and the text.
func (k *WitnessKey) Verify(msg, sig []byte) bool {
	if len(sig) != 8+ed25519.SignatureSize {
		return false
	}
	at := binary.BigEndian.Uint64(sig)
	return ed25519.Verify(k.public, CosignedMessage(at, msg), sig[8:])
}

// CosignedMessage is what a witness signs at a Unix time over a checkpoint's text.
func CosignedMessage(at uint64, text []byte) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", at), text...)
}

// Cosigners are the witnesses among keys that have cosigned a checkpoint. It does
// not check who signed the checkpoint itself.
func Cosigners(checkpoint string, keys ...*WitnessKey) []string {
	if len(checkpoint) > MaxCheckpoint {
		return nil
	}
	var names []string
	for _, k := range keys {
		if n, err := note.Open([]byte(checkpoint), note.VerifierList(k)); err == nil && len(n.Sigs) > 0 {
			names = append(names, k.name)
		}
	}
	return names
}

// cosign adds signature lines that a witness has answered to a note, if there is
// a good one by its key among them; others are left out.
func (k *WitnessKey) cosign(checkpoint string, answer []byte) (string, error) {
	for line := range bytes.Lines(answer) {
		both := checkpoint + string(line)
		if !strings.HasPrefix(string(line), "— "+k.name+" ") || !strings.HasSuffix(both, "\n") {
			continue
		}
		if len(Cosigners(both, k)) == 1 {
			return string(line), nil
		}
	}
	return "", fmt.Errorf("witness %s: no good cosignature in its answer", k.name)
}

// String is the verifier key.
func (k *WitnessKey) String() string {
	key := append([]byte{algCosignature}, k.public...)
	return k.name + "+" + hex.EncodeToString(binary.BigEndian.AppendUint32(nil, k.hash)) + "+" + base64.StdEncoding.EncodeToString(key)
}
