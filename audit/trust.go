package audit

import (
	"crypto/ed25519"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage/ledger"
)

// Trust is what an auditor has pinned: obtained once, over another channel than the
// bundles. Without it a bundle shows only that it agrees with itself.
type Trust struct {
	Origin string      `json:"origin"` // writ/<thumbprint of the root key>
	Root   intents.JWK `json:"root"`
	// Checkpoint, if any, is the last one that the auditor knows: the bundle's
	// log must be a continuation of that one.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Witnesses, if any, are the verifier keys (C2SP, type 0x04) of third parties of
	// whom Quorum must have cosigned; 0: all of them.
	Witnesses []string `json:"witnesses,omitempty"`
	Quorum    int      `json:"quorum,omitempty"`

	public    ed25519.PublicKey
	witnesses []*ledger.WitnessKey
}

// ReadTrust reads a trust file.
func ReadTrust(raw []byte) (*Trust, error) {
	var t Trust
	if err := intents.UnmarshalStrict(raw, &t); err != nil {
		return nil, fmt.Errorf("trust file: %v", err)
	}
	key, err := t.Root.ToKey()
	if err != nil {
		return nil, fmt.Errorf("trust file: root: %v", err)
	}
	if t.Origin != state.Origin(key.Public) {
		return nil, fmt.Errorf("trust file: origin is not writ/ and the root key's thumbprint")
	}
	t.public = key.Public
	for _, vkey := range t.Witnesses {
		w, err := ledger.ParseWitnessKey(vkey)
		if err != nil {
			return nil, fmt.Errorf("trust file: witnesses: %v", err)
		}
		if slices.ContainsFunc(t.witnesses, func(x *ledger.WitnessKey) bool { return x.Name() == w.Name() }) {
			return nil, fmt.Errorf("trust file: witnesses: %s stands twice", w.Name())
		}
		t.witnesses = append(t.witnesses, w)
	}
	if t.Quorum < 0 || t.Quorum > len(t.witnesses) {
		return nil, fmt.Errorf("trust file: quorum: must be from 0 to the number of witnesses")
	}
	return &t, nil
}

// NewTrust pins a root key.
func NewTrust(root intents.Key) Trust {
	return Trust{Origin: state.Origin(root.Public), Root: root.ToJWK(), public: root.Public}
}
