package audit

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// genesis pins everything that follows to the root key.
func (f *fold) genesis(it *item) error {
	if it.control == nil || it.control.Genesis == nil {
		return errors.New("record 0 is no genesis")
	}
	g, root, err := openGenesis(*it.control.Genesis)
	if err != nil {
		return err
	}
	if g.Origin != f.origin || (f.root != nil && !f.root.Equal(root)) {
		return errors.New("the genesis is not signed by the pinned root key")
	}
	f.root = root
	set, keys, err := intents.OpenKeySet(g.KeySet, root)
	if err != nil {
		return fmt.Errorf("key set of the genesis: %w", err)
	}
	if set.Version != 1 || set.Prev != "" {
		return errors.New("the genesis does not hold key set 1")
	}
	f.keys = &keySet{g.KeySet, set, keys, 0}
	f.policy, f.catalog, f.roles = g.Policy, g.Catalog, g.Roles
	f.policies[g.Policy] = true
	for _, t := range g.Tenants {
		f.dir = f.dir.with(0, t, func(t *tenantData) { t.setRoles(g.Roles) })
	}
	for _, u := range g.Users {
		f.dir = f.dir.with(0, u.Tenant, func(t *tenantData) { t.users[u.UserID] = u.User })
	}
	for _, x := range g.Data {
		f.dir = f.dir.with(0, x.Tenant, func(t *tenantData) { t.data[x.Key] = x.Value })
	}
	return nil
}

// genesis as the router writes it.
type genesis struct {
	Origin  string             `json:"origin"`
	RootJWK intents.JWK        `json:"root"`
	KeySet  string             `json:"key_set"`
	Policy  string             `json:"policy_digest"`
	Catalog string             `json:"catalog_digest"`
	Tenants []string           `json:"tenants"`
	Roles   []catalog.RoleData `json:"roles"`
	Users   []genesisUser      `json:"users"`
	Data    []genesisData      `json:"data,omitempty"`
}

type genesisUser struct {
	Tenant string `json:"tenant"`
	catalog.User
}

type genesisData struct {
	Tenant string `json:"tenant"`
	catalog.Data
}

// openGenesis verifies a genesis with the root key that it names itself.
func openGenesis(token string) (g genesis, root ed25519.PublicKey, err error) {
	var claimed struct {
		Root intents.JWK `json:"root"`
	}
	if err := intents.PeekClaims(token, &claimed); err != nil {
		return g, nil, fmt.Errorf("genesis: %w", err)
	}
	key, err := claimed.Root.ToKey()
	if err != nil {
		return g, nil, fmt.Errorf("genesis: %w", err)
	}
	only := intents.KeysFunc(func(kid string) (intents.Key, error) {
		if kid != key.KID {
			return intents.Key{}, intents.Refuse(intents.KeyUnknown, "", "not signed by the root key that it names")
		}
		return key, nil
	})
	if _, err := intents.OpenCompact(token, intents.TypGenesis, only, &g); err != nil {
		return g, nil, fmt.Errorf("genesis: %w", err)
	}
	if g.Origin != originOf(key.Public) {
		return g, nil, errors.New("genesis: its origin is not its root key's")
	}
	return g, key.Public, nil
}
