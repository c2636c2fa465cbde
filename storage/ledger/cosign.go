package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	cosignature "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"aob.dev/writ/intents"
)

// algCosignature is the type of keys that make timestamped Ed25519 cosignatures
// (C2SP tlog-cosignature, cosignature/v1).
const algCosignature = 0x04

// WitnessKey verifies the cosignatures of one witness.
type WitnessKey struct {
	note.Verifier
	vkey string
}

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
	v, err := cosignature.NewVerifierForCosignatureV1(vkey)
	if err != nil {
		return nil, fmt.Errorf("witness key of %s: %v", name, err)
	}
	if hash != fmt.Sprintf("%08x", v.KeyHash()) {
		return nil, fmt.Errorf("witness key of %s has another hash", name)
	}
	return &WitnessKey{v, vkey}, intents.AdmitKey(key[1:])
}

// String is the verifier key.
func (k *WitnessKey) String() string { return k.vkey }

// Cosigners are the witnesses among keys that have cosigned a checkpoint. It does
// not check who signed the checkpoint itself.
func Cosigners(checkpoint string, keys ...*WitnessKey) []string {
	if len(checkpoint) > MaxCheckpoint {
		return nil
	}
	var names []string
	for _, k := range keys {
		if n, err := note.Open([]byte(checkpoint), note.VerifierList(k)); err == nil && len(n.Sigs) > 0 {
			names = append(names, k.Name())
		}
	}
	return names
}

// cosign adds signature lines that a witness has answered to a note, if there is
// a good one by its key among them; others are left out.
func (k *WitnessKey) cosign(checkpoint string, answer []byte) (string, error) {
	for line := range bytes.Lines(answer) {
		both := checkpoint + string(line)
		if !strings.HasPrefix(string(line), "— "+k.Name()+" ") || !strings.HasSuffix(both, "\n") {
			continue
		}
		if len(Cosigners(both, k)) == 1 {
			return string(line), nil
		}
	}
	return "", fmt.Errorf("witness %s: no good cosignature in its answer", k.Name())
}
