package state

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Genesis is the first record of a log, signed by the root key; all later records depend on it.
// RootJWK is the key that signed it; verifiers must have pinned it.
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

// HoldOnce is tenant data that holds each call of a skill whose effect is once for approval,
// until an operator puts other data.
func HoldOnce(tenant string) GenesisData {
	return GenesisData{Tenant: tenant, Data: catalog.Data{Key: "approval", Value: json.RawMessage(`{"once":true}`)}}
}

// Rules is the version of the rules by which the router's own code judges intents. The genesis
// of a log names it: a build with another version, whose verdicts may differ, refuses to read
// the log.
const Rules = 1

// Control is the part of control records.
type Control struct {
	Genesis *string `json:"genesis,omitempty"` // compact JWS of a Genesis
	Policy  string  `json:"policy_digest,omitempty"`
	Catalog string  `json:"catalog_digest,omitempty"`
	// Revision of the policy, from its bundle; set with Policy.
	Revision int64 `json:"policy_revision,omitempty"`

	Counters *Counters `json:"counters,omitempty"` // refusals without a record of their own
	Rules    int       `json:"rules,omitempty"`    // set with Genesis: the rules by which this log is judged
}

// Counters counts refusals that left no record of their own since the last counter record: those
// before a decision, those of a rate limit or of a batch as a whole, and repeated ones. They
// name keys, never tenants or intents.
type Counters struct {
	Refused map[intents.Code]int64 `json:"refused"`
	Signers []SignerCount          `json:"signers,omitempty"` // whose signature was valid, most first
}

// SignerCount is the number of a signer's intents that were refused.
type SignerCount struct {
	KID     string `json:"kid"`
	Refused int64  `json:"refused"`
}

// Origin is the log origin of a root key.
func Origin(root ed25519.PublicKey) string { return "writ/" + intents.Thumbprint(root) }

// NewGenesis signs the genesis of a log: key set 1, tenants system and default, the default
// roles, the operator "local" of system as its administrator, and data.
func NewGenesis(root intents.Signer, set intents.KeySet, policyDigest string, types *catalog.Catalog, data ...GenesisData) (string, error) {
	token, err := intents.SignKeySet(root, set)
	if err != nil {
		return "", err
	}
	users := []GenesisUser{{Tenant: systemTenant, User: catalog.User{UserID: "local", Roles: []string{"admin", "auditor", "approver"}}}}
	for _, d := range data {
		if d.Key == DataAlone {
			one := &tenant{Data: map[string]json.RawMessage{d.Key: d.Value}}
			users = append(users, GenesisUser{Tenant: d.Tenant, User: catalog.User{UserID: one.alone(), Roles: RolesAlone}})
		}
	}
	return intents.SignCompact(root, intents.TypGenesis, Genesis{
		Origin: Origin(root.Public()), RootJWK: root.VerificationKey().ToJWK(), KeySet: token,
		Policy: policyDigest, Catalog: types.Digest(), Tenants: []string{systemTenant, "default"}, Roles: DefaultRoles(),
		Users: users, Data: data,
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

func (s *State) applyControl(r storage.Record) error {
	c, err := readPart[Control](r, storage.PartControl)
	if err != nil {
		return err
	}
	return s.control(c, r.Position)
}

// control applies genesis and reloads.
func (s *State) control(c Control, position int64) error {
	if c.Genesis != nil {
		switch {
		case position != 0:
			return fmt.Errorf("genesis at position %d", position)
		case c.Rules != Rules:
			return fmt.Errorf("the log was begun under rules %d, and this build judges by rules %d alone: use the build that began it, or begin a new data directory", c.Rules, Rules)
		}
		if err := s.applyGenesis(*c.Genesis); err != nil {
			return err
		}
	}
	if c.Genesis == nil && c.Rules != 0 {
		return fmt.Errorf("rules %d at position %d: the rules of a log are those of its genesis", c.Rules, position)
	}
	if c.Policy != "" {
		s.applyPolicy(c.Policy, c.Revision)
	}
	if c.Catalog != "" {
		s.catalog = c.Catalog
	}
	return nil
}

func (s *State) applyGenesis(token string) error {
	g, err := OpenGenesis(token)
	if err != nil {
		return err
	}
	set, keys, err := intents.OpenKeySet(g.KeySet, g.root)
	if err != nil {
		return err
	}
	s.origin, s.root, s.roles = g.Origin, g.root, g.Roles
	s.keySet, s.keySetToken, s.keys = set, g.KeySet, keys
	s.policy.Digest, s.catalog = g.Policy, g.Catalog
	for _, id := range g.Tenants {
		s.begin(id, g.Roles, 0)
	}
	for _, u := range g.Users {
		s.change(u.Tenant, 0).Users[u.UserID] = u.User
	}
	for _, x := range g.Data {
		s.change(x.Tenant, 0).Data[x.Key] = x.Value
	}
	return nil
}

// DefaultRoles are the roles that the tenants of a new log begin with.
func DefaultRoles() []catalog.RoleData {
	return []catalog.RoleData{
		{Role: "user", Capabilities: []string{
			"plans:*", catalog.RunAgent + ":*", "memory:*", "files:*", "artifacts:*", "python:run", "skills:read", "skills:call", "resources:read", "sessions:*", "schedules:*", "actions:*",
			"souls:read", "souls:write:own", "logs:read", "kb:read", "kb:write:own", "cache:*", catalog.StartRuns + ":*", catalog.ReplayRuns, "runs:patch", "runs:ask",
		}},
		{Role: "auditor", Capabilities: []string{"audit:read", "plans:read", "policy:explain"}},
		{Role: RoleApprover, Capabilities: []string{"runs:approve"}},
		{Role: "admin", Capabilities: []string{"admin:*", "souls:*", "plans:*", "policy:explain"}},
	}
}
