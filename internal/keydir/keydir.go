// Package keydir stores the private keys of one data directory, mode 0600, in a
// directory of mode 0700:
//
//	ROLE.pem          the first key of a role
//	ROLE.<kid>.pem    one that followed it (writ admin keys rotate)
//
// The key set in force decides which of a role's keys signs: the last one in it whose private half
// is present (Signers.InForce).
package keydir

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/durable"
)

// Roles whose keys a data directory has. The operator is "local" of system.
var Roles = []intents.Role{
	intents.RoleRoot, intents.RoleGateway, intents.RoleManager, intents.RolePlanner, intents.RoleWorkflow,
	intents.RoleOperator, intents.RoleRouter, intents.RoleLedger,
}

// The operator whose key a data directory has.
const (
	LocalSubject = "local"
	LocalTenant  = "system"
)

// Keys of a data directory by role.
type Keys map[intents.Role]intents.Signer

// Signers are private keys by kid.
type Signers map[string]intents.Signer

// Create makes the keys that are missing. It is for a first start only, before the
// genesis. A crash leaves some complete keys, and the next start makes the rest. All are
// durable when Create returns.
func Create(dir string) (Keys, error) {
	if err := durable.MkdirAll(dir); err != nil {
		return nil, err
	}
	for _, role := range Roles {
		path := file(dir, role)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		s, err := intents.GenerateSigner(role)
		if err != nil {
			return nil, err
		}
		if err := write(path, s); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(durable.SyncDir(dir), durable.SyncDir(filepath.Dir(dir))); err != nil {
		return nil, err // names that an interrupted start has made may not be durable
	}
	return Load(dir)
}

// Add stores a key beside those of its role and returns its file. It is durable when Add
// returns. It signs once it is in the key set in force.
func Add(dir string, s intents.Signer) (path string, err error) {
	path = filepath.Join(dir, string(s.Role)+"."+s.KID+".pem")
	return path, write(path, s)
}

func write(path string, s intents.Signer) error {
	text, err := intents.EncodeKey(s)
	if err != nil {
		return err
	}
	return durable.Write(path, text)
}

// Load reads the first keys. The root key may be gone: it belongs offline.
func Load(dir string) (Keys, error) {
	keys := make(Keys, len(Roles))
	for _, role := range Roles {
		s, err := intents.ReadKey(file(dir, role), role)
		if errors.Is(err, fs.ErrNotExist) && role == intents.RoleRoot {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		keys[role] = s
	}
	return keys, nil
}

// LoadAll reads every key, the root's too if it is there. A role without any
// file is an error.
func LoadAll(dir string) (Signers, error) { return load(dir, true) }

// LoadSome reads the keys that are there.
func LoadSome(dir string) (Signers, error) { return load(dir, false) }

func load(dir string, all bool) (Signers, error) {
	held := make(Signers)
	for _, role := range Roles {
		later, err := filepath.Glob(filepath.Join(globbed(dir), string(role)+".*.pem"))
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		first := file(dir, role)
		if _, err := os.Stat(first); err == nil || (all && len(later) == 0 && role != intents.RoleRoot) {
			later = append(later, first)
		}
		for _, path := range later {
			s, err := intents.ReadKey(path, role)
			if err != nil {
				return nil, fmt.Errorf("keys: %w", err)
			}
			held[s.KID] = s
		}
	}
	return held, nil
}

// globbed escapes the characters of a directory's name that are special to Glob.
func globbed(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// InForce chooses the keys that sign: of each role the last one of the key set that is present, not
// revoked and not for raw signatures; of operators that of "local" of system. The root key is in no
// set and is returned if it is present. Each of the given roles must have one; without roles: all
// but root.
func (h Signers) InForce(set []intents.JWK, roles ...intents.Role) (Keys, error) {
	keys := make(Keys, len(Roles))
	for _, j := range set {
		s, held := h[j.KID]
		switch {
		case !held || j.Revoked || j.Raw || s.Role != j.Role:
		case j.Role == intents.RoleOperator && (j.Subject != LocalSubject || j.Tenant != LocalTenant):
		default:
			keys[j.Role] = s
		}
	}
	for _, s := range h {
		if s.Role == intents.RoleRoot {
			keys[s.Role] = s
		}
	}
	if len(roles) == 0 {
		roles = slices.DeleteFunc(slices.Clone(Roles), func(r intents.Role) bool { return r == intents.RoleRoot })
	}
	for _, role := range roles {
		if _, there := keys[role]; !there {
			return keys, fmt.Errorf("keys: none of the %s keys that are here is in force: put back the file of one, or rotate (writ admin keys rotate %s)", role, role)
		}
	}
	return keys, nil
}

// ByRole lists the present keys of a role, sorted by kid.
func (h Signers) ByRole(role intents.Role) []intents.Signer {
	var out []intents.Signer
	for _, kid := range slices.Sorted(maps.Keys(h)) {
		if s := h[kid]; s.Role == role {
			out = append(out, s)
		}
	}
	return out
}

func file(dir string, role intents.Role) string { return filepath.Join(dir, string(role)+".pem") }

// RootFile is where the root key is until it is taken offline.
func RootFile(dir string) string { return file(dir, intents.RoleRoot) }

// KeySet is version 1 of the key set: every key but the root's.
func (k Keys) KeySet() intents.KeySet {
	set := intents.KeySet{Version: 1}
	for _, role := range Roles {
		if role == intents.RoleRoot {
			continue
		}
		key := k[role].VerificationKey()
		if role == intents.RoleOperator {
			key.Subject, key.Tenant = LocalSubject, LocalTenant
		}
		set.Keys = append(set.Keys, key.ToJWK())
	}
	return set
}

// Operator signs intents as an operator of a tenant.
type Operator struct {
	Key             intents.Signer
	Subject, Tenant string
	Origin          string // of the log
}

// operatorTTL is how long an operator's intent may wait for acceptance, in seconds. It
// is signed when it is sent.
const operatorTTL = 60

// Sign signs an intent.
func (o Operator) Sign(typ string, args any, now time.Time) ([]byte, error) {
	return o.SignUnder(catalog.RandomKey(), typ, args, now)
}

// SignUnder signs an intent under an idempotency key.
func (o Operator) SignUnder(key, typ string, args any, now time.Time) ([]byte, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	signed, _, err := intents.Sign(o.Key, intents.Body{
		Version: intents.Version,
		Intent:  intents.Spec{Type: typ, Args: raw}, Actor: intents.Actor{UserID: o.Subject, Tenant: o.Tenant},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(now), TTLSec: operatorTTL,
			Audience: o.Origin, IdempotencyKey: key,
		},
	})
	return signed, err
}

// NewAPIKey makes an API key. A router knows only its hash.
func NewAPIKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return "writ_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// Bounds of an API key that somebody else has made. Whoever gets its hash can guess at it.
const (
	maxKey  = 512
	minBits = 80
)

// ErrWeakKey is an API key that can be guessed. This machine alone may be asked with it.
var ErrWeakKey = errors.New("bootstrap_key (API_KEY): it is too weak: it can be guessed; make one with `openssl rand -hex 32`, or unset it, and writ makes one")

// CheckAPIKey checks an API key made elsewhere: the error is ErrWeakKey, or that no request could
// carry it.
func CheckAPIKey(key string) error {
	switch {
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("bootstrap_key (API_KEY): it has characters that no header may have: use letters, digits and signs of ASCII")
	case len(key) > maxKey:
		return fmt.Errorf("bootstrap_key (API_KEY): it is too long: use %d characters at most", maxKey)
	case bits(key) < minBits:
		return ErrWeakKey
	}
	return nil
}
