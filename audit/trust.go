package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
)

// Trust is what an auditor has pinned: got once, over another way than the
// bundles. Without it a bundle shows only that it agrees with itself.
type Trust struct {
	Origin string      `json:"origin"` // writ/<thumbprint of the root key>
	Root   intents.JWK `json:"root"`
	// Checkpoint, if any, is the last one that the auditor has seen: the bundle's
	// log must be a continuation of that one.
	Checkpoint string `json:"checkpoint,omitempty"`

	public ed25519.PublicKey
}

// ReadTrust reads a trust file.
func ReadTrust(raw []byte) (*Trust, error) {
	var t Trust
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("trust file: %v", err)
	}
	key, err := t.Root.ToKey()
	if err != nil {
		return nil, fmt.Errorf("trust file: root: %v", err)
	}
	if t.Origin != originOf(key.Public) {
		return nil, fmt.Errorf("trust file: origin is not writ/ and the root key's thumbprint")
	}
	t.public = key.Public
	return &t, nil
}

// originOf is the log origin that a root key gives.
func originOf(root ed25519.PublicKey) string { return "writ/" + intents.Thumbprint(root) }

// NewTrust pins a root key.
func NewTrust(root intents.Key) Trust {
	return Trust{Origin: originOf(root.Public), Root: root.ToJWK(), public: root.Public}
}
