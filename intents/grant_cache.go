package intents

import (
	"crypto/ed25519"
	"strings"
	"sync"
)

// MaxGrants is how many grants are cached. When it is full all are
// dropped: the grants of active turns are soon cached again.
const MaxGrants = 4096

// Grants caches grants whose signature has been verified, and nothing else
// about them: by the whole token it retains the claims and the public key that
// verified it, which never change. The key is looked up each time, so that
// role, revocation and end are those of the key set in force, and another public
// key needs another verification. Audience and times are also checked each time.
//
// Only what a gateway has signed is retained. The zero value is ready, nil
// caches nothing. Safe for concurrent use.
type Grants struct {
	mu   sync.RWMutex // guards rows
	rows map[string]verifiedGrant
}

type verifiedGrant struct {
	grant  *Grant
	kid    string
	public ed25519.PublicKey
}

// verified returns the claims of a grant, which are shared, and the key that signed it. row is
// what was verified of the same token before, if anything was.
func (m *Grants) verified(token string, keys Keys, row verifiedGrant) (verifiedGrant, Key, error) {
	if row.grant == nil {
		row = m.get(token)
	}
	if row.grant != nil {
		key, err := keys.Key(row.kid)
		if err != nil {
			return verifiedGrant{}, Key{}, err
		}
		if key.Public.Equal(row.public) {
			return row, key, nil
		}
	}
	g := &Grant{}
	key, err := OpenCompact(token, TypGrant, keys, g)
	if err != nil {
		return verifiedGrant{}, Key{}, err
	}
	row = verifiedGrant{g, key.KID, key.Public}
	if key.Role == RoleGateway { // what others sign is refused and would only fill the room
		m.put(strings.Clone(token), row) // the token is a part of its envelope
	}
	return row, key, nil
}

func (m *Grants) get(token string) verifiedGrant {
	if m == nil {
		return verifiedGrant{}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.rows[token]
}

func (m *Grants) put(token string, row verifiedGrant) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil || len(m.rows) >= MaxGrants {
		m.rows = make(map[string]verifiedGrant)
	}
	m.rows[token] = row
}
