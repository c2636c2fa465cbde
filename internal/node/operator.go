package node

import (
	"context"
	"errors"
	"fmt"
	"net"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// operator signs and submits an intent as the operator "local" of system.
func (n *Node) operator(ctx context.Context, typ string, args any) error {
	_, err := n.operatorUnder(ctx, catalog.RandomKey(), typ, args)
	return err
}

// operatorUnder is operator under an idempotency key. The error is that of an answer that is
// not OK.
func (n *Node) operatorUnder(ctx context.Context, key, typ string, args any) (*intents.Answer, error) {
	local := keydir.Operator{Key: n.keys.Now(intents.RoleOperator), Subject: "local", Tenant: keydir.LocalTenant, Origin: n.Origin()}
	signed, err := local.SignUnder(key, typ, args, n.cfg.Now())
	if err != nil {
		return nil, err
	}
	a, err := n.router.SubmitAndWait(ctx, signed, 0)
	if err != nil {
		a = router.RefusalAnswer(signed, err)
	}
	if a.Code != intents.OK {
		return a, fmt.Errorf("%s: %s: %s", typ, a.Code, a.Reason)
	}
	return a, nil
}

// checkKey refuses an API key that can be guessed, unless this machine alone reaches writ.
func (n *Node) checkKey(key string) error {
	err := keydir.CheckAPIKey(key)
	n.KeyWeak = errors.Is(err, keydir.ErrWeakKey)
	if n.KeyWeak && n.onlyHere() {
		n.cfg.Log.Warn("the API key of user local can be guessed, and is accepted because only this machine reaches writ; before others reach it, make another one: writ apikey create")
		return nil
	}
	return err
}

// nearby reports whether only this machine reaches an address.
func nearby(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// firstKey makes the API key of user "local" at the first start, or uses the given one, which is
// stored in no file. Only its hash is sent. If a crash comes before the intent is committed, the
// next start makes another key and replaces the file.
func (n *Node) firstKey(ctx context.Context) (err error) {
	key := n.cfg.FirstKey
	if n.directory.HasAPIKeys() {
		if key != "" {
			row, _, known := n.directory.APIKey(intents.Digest([]byte(key)))
			n.KeyUnknown = !known || row.Revoked
		}
		if key != "" && !n.KeyUnknown {
			return n.checkKey(key)
		}
		return nil
	}
	if key == "" {
		key = keydir.NewAPIKey()
		n.APIKey = key
		if n.standalone() { // a cell's is for its operator's eyes
			err = durable.Write(datadir.KeyFile(n.cfg.Dir), []byte(key+"\n"))
		}
	} else {
		n.KeyInUse = true
		err = n.checkKey(key)
	}
	if err != nil {
		return err
	}
	return n.operator(ctx, "admin.put", catalog.AdminPut{Tenant: firstTenant, APIKey: &catalog.APIKey{
		ID:   "local",
		Hash: intents.Digest([]byte(key)), UserID: firstUser, MaxRoles: state.RolesAlone, MayAssertUser: true,
	}})
}

// LocalKey is the API key of user "local", as long as its file exists.
func (n *Node) LocalKey() (string, error) { return datadir.LocalKey(n.cfg.Dir) }

// Archive opens the data of an open node, for checks in the same process. Everything that
// is durable is in a published checkpoint then.
func (n *Node) Archive(ctx context.Context) (*datadir.Archive, error) {
	if _, err := n.ledger.Sync(ctx); err != nil {
		return nil, err
	}
	return datadir.OpenArchive(ctx, n.cfg.Dir)
}

// Records of the journal, for checks in the same process.
func (n *Node) Records() storage.Records { return n.journal }

// State of the node, for checks in the same process.
func (n *Node) State() *state.State { return n.directory }

// Router of the node, for checks in the same process.
func (n *Node) Router() *router.Router { return n.router }
