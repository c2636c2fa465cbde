package node

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

// operator seals and submits an order as the operator "local" of system.
func (n *Node) operator(ctx context.Context, typ string, args any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // crypto/rand.Read never fails
	sealed, _, err := intents.Seal(n.keys[intents.RoleOperator], intents.Body{Version: intents.Version,
		Intent: intents.Intent{Type: typ, Args: raw}, Actor: intents.Actor{UserID: "local", Tenant: "system"},
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(n.cfg.Now()), TTLSec: 60, Audience: n.Origin(),
			IdempotencyKey: "rnd_" + hex.EncodeToString(nonce[:])}})
	if err != nil {
		return err
	}
	a, err := n.router.Submit(ctx, sealed)
	if err != nil {
		a = router.Refused(sealed, err)
	}
	if a.Code != intents.OK {
		return fmt.Errorf("%s: %s: %s", typ, a.Code, a.Reason)
	}
	return nil
}

// KeyFile holds the first API key, mode 0600, beside the private keys: whoever
// can read it can read those. Commands on this machine use it.
func KeyFile(dir string) string { return filepath.Join(dir, "keys", "api_key") }

// firstKey makes the API key of user "local" at the first start (DESIGN §15).
// Only its hash is sent. Crash before the order is committed: the next start
// makes another key and the file is replaced.
func (n *Node) firstKey(ctx context.Context) error {
	if n.directory.HasAPIKeys() {
		return nil
	}
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // crypto/rand.Read never fails
	key := "writ_" + base64.RawURLEncoding.EncodeToString(secret[:])
	path := KeyFile(n.cfg.Dir)
	if err := errors.Join(removeIfThere(path), os.WriteFile(path, []byte(key+"\n"), 0o600)); err != nil {
		return err
	}
	err := n.operator(ctx, "admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{ID: "local",
		Hash: intents.Digest([]byte(key)), UserID: "local", MaxRoles: []string{"user", "auditor", "approver"}, MayAssertUser: true}})
	if err != nil {
		return err
	}
	n.APIKey = key
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// approveSkills pins the manifests that the skill servers of the command line
// show for the first time: naming a server to `writ up` is the operator's word
// for it. A manifest that changed since is another version and waits for
// skill.approve (DESIGN §9). A server that is down is reported and asked again
// when it is used.
func (n *Node) approveSkills(ctx context.Context) error {
	if len(n.cfg.Skills) == 0 {
		return nil
	}
	found, err := n.registry.Skills(ctx)
	if err != nil {
		n.cfg.Log.Warn("a skill server does not answer; its skills are not there until it does: start it and restart writ", "error", err.Error())
	}
	for _, s := range found {
		if s.Err != nil {
			n.cfg.Log.Warn("skill left out", "skill", s.Name, "server", s.Server, "error", s.Err.Error())
			continue
		}
		digest := s.Digest()
		pin, pinned := n.directory.View().Pin("default", s.Name)
		switch {
		case pinned && pin.Digest == digest:
		case pinned:
			n.cfg.Log.Warn("skill has changed and is refused until it is approved again", "skill", s.Name, "digest", digest)
		default:
			if err := n.operator(ctx, "skill.approve", catalog.SkillApprove{Tenant: "default", Skill: s.Name, Digest: digest, Effect: effectOf(s.ReadOnlyHint, s.IdempotentHint)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// effectOf takes a server's hints at their word, because the operator named the
// server; what they leave unsaid is once.
func effectOf(readOnly, idempotent *bool) catalog.Effect {
	switch {
	case readOnly != nil && *readOnly:
		return catalog.Pure
	case idempotent != nil && *idempotent:
		return catalog.Idempotent
	default:
		return catalog.Once
	}
}

// LocalKey is the API key of user "local", as long as its file is there.
func (n *Node) LocalKey() (string, error) { return ReadLocalKey(n.cfg.Dir) }

// ReadLocalKey reads the first API key of a data directory.
func ReadLocalKey(dir string) (string, error) {
	raw, err := os.ReadFile(KeyFile(dir))
	return strings.TrimSpace(string(raw)), err
}

// Records of the journal, for checks in the same process.
func (n *Node) Records() storage.Records { return n.journal }

// Router of the node, for checks in the same process.
func (n *Node) Router() *router.Router { return n.router }
