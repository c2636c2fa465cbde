package router

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Genesis is the first record of a log, signed by the root key: everything that
// later records rest on. RootJWK is the key that signed it; whoever
// verifies must have pinned it.
type Genesis struct {
	Origin  string             `json:"origin"` // writ/<root thumbprint>
	RootJWK intents.JWK        `json:"root"`
	KeySet  string             `json:"key_set"` // version 1, a JWS by the root
	Policy  string             `json:"policy_digest"`
	Catalog string             `json:"catalog_digest"`
	Tenants []string           `json:"tenants"`
	Roles   []catalog.RoleData `json:"roles"`
	Users   []GenesisUser      `json:"users"`
	Data    []GenesisData      `json:"data,omitempty"`

	root ed25519.PublicKey
}

// GenesisUser is a user row of a tenant.
type GenesisUser struct {
	Tenant string `json:"tenant"`
	catalog.User
}

// GenesisData is data of a tenant for policies.
type GenesisData struct {
	Tenant string `json:"tenant"`
	catalog.Data
}

// HoldOnce has people of a tenant approve each call of a skill that acts once, until
// an operator puts other data.
func HoldOnce(tenant string) GenesisData {
	return GenesisData{Tenant: tenant, Data: catalog.Data{Key: "approval", Value: json.RawMessage(`{"once":true}`)}}
}

// holdOnce does so in a tenant that begins. The lock is held.
func (d *Directory) holdOnce(tenant string) {
	x := HoldOnce(tenant)
	d.tenants[tenant].data[x.Key] = x.Value
}

// Control is the part of control records.
type Control struct {
	Genesis *string `json:"genesis,omitempty"` // compact JWS of a Genesis
	Policy  string  `json:"policy_digest,omitempty"`
	Catalog string  `json:"catalog_digest,omitempty"`
	// Revision of the policy, as a bundle gives it; with Policy.
	Revision int64 `json:"policy_revision,omitempty"`

	Counters *Counters `json:"counters,omitempty"` // refusals without a record of their own
	// Rules by which orders are judged from here on; 0: as before.
	Rules intents.Rules `json:"rules,omitempty"`
}

// Origin is the log origin of a root key.
func Origin(root ed25519.PublicKey) string { return "writ/" + intents.Thumbprint(root) }

// NewGenesis seals the genesis of a log: key set 1, tenants system and default,
// the default roles, the operator "local" of system as its administrator, and data.
func NewGenesis(root intents.Signer, set intents.KeySet, policyDigest string, data ...GenesisData) (string, error) {
	token, err := intents.SignKeySet(root, set)
	if err != nil {
		return "", err
	}
	return intents.SignCompact(root, intents.TypGenesis, Genesis{
		Origin: Origin(root.Public()), RootJWK: root.VerificationKey().ToJWK(), KeySet: token,
		Policy: policyDigest, Catalog: catalog.Digest(), Tenants: []string{systemTenant, "default"}, Roles: DefaultRoles(),
		Users: []GenesisUser{{Tenant: systemTenant, User: catalog.User{UserID: "local", Roles: []string{"admin", "auditor", "approver"}}}},
		Data:  data,
	})
}

// OpenGenesis verifies a genesis with the root key that it names.
func OpenGenesis(token string) (Genesis, error) {
	var g Genesis
	var claimed struct {
		Root intents.JWK `json:"root"`
	}
	if err := intents.PeekClaims(token, &claimed); err != nil {
		return g, fmt.Errorf("genesis: %w", err)
	}
	root, err := claimed.Root.ToKey()
	if err != nil {
		return g, fmt.Errorf("genesis: %w", err)
	}
	keys := intents.KeysFunc(func(kid string) (intents.Key, error) {
		if kid != root.KID {
			return intents.Key{}, intents.Refuse(intents.KeyUnknown, "", "genesis is not signed by the root that it names")
		}
		return root, nil
	})
	if _, err := intents.OpenCompact(token, intents.TypGenesis, keys, &g); err != nil {
		return g, fmt.Errorf("genesis: %w", err)
	}
	if g.Origin != Origin(root.Public) {
		return g, fmt.Errorf("genesis: origin is not the root's")
	}
	for i, u := range g.Users {
		if !slices.Contains(g.Tenants, u.Tenant) {
			return g, fmt.Errorf("genesis: user %d is of no tenant of it", i)
		}
	}
	for i, x := range g.Data {
		if !slices.Contains(g.Tenants, x.Tenant) {
			return g, fmt.Errorf("genesis: data %d is of no tenant of it", i)
		}
	}
	g.root = root.Public
	return g, nil
}

// Begin commits the genesis as record 0. A crash before it leaves an empty
// journal, and the next start begins again with the same keys.
func Begin(ctx context.Context, j storage.Journal, token string, now time.Time) error {
	return commitControl(ctx, j, Control{Genesis: &token, Rules: intents.CurrentRules}, now, subjectKeys, subjectPolicy, subjectTenant(systemTenant), subjectTenant("default"))
}

// commitControl appends a control record.
func commitControl(ctx context.Context, j storage.Journal, c Control, now time.Time, touches ...storage.Subject) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	res, err := j.Commit(ctx, storage.Commit{ID: newCommitID(), Entries: []storage.Entry{{
		Record: storage.NewRecord(storage.KindControl, now, map[string]json.RawMessage{storage.PartControl: body}),
		Of:     storage.Nobody, Touches: touches,
	}}})
	if err != nil {
		return err
	}
	if res.Verdict != storage.Won {
		return fmt.Errorf("control record was not committed")
	}
	return nil
}
