package node

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state"
)

// The first user, who is alone with a writ that only this machine reaches, and the id of the key by
// which they decide in person.
const (
	firstTenant = "default"
	firstUser   = "local"
	personKey   = "person"
)

// onlyHere reports whether only this machine reaches the node.
func (n *Node) onlyHere() bool {
	return n.standalone() && nearby(n.cfg.Listen) && n.cfg.PublicURL == ""
}

// Alone returns the user who is alone, and may approve what they asked for; empty if there is none.
func (n *Node) Alone() string { return n.directory.Directory().Alone(firstTenant) }

// beginData is the data of the tenants in the genesis.
func (n *Node) beginData() []state.GenesisData {
	out := []state.GenesisData{state.HoldOnce(firstTenant)}
	if n.onlyHere() {
		out = append(out, state.Alone(firstTenant, firstUser))
	}
	return out
}

// onePerson makes the key by which a person who is alone decides, or ends it where others reach
// writ by now.
//
// Crash: the next start does it, and replaces the file of a key that was not committed.
func (n *Node) onePerson(ctx context.Context) error {
	switch user := n.Alone(); {
	case user == "":
		return nil
	case !n.onlyHere():
		n.cfg.Log.WarnContext(ctx, "others reach this writ: from now on nobody approves what they asked for themselves", slog.String("user", user))
		return n.operator(ctx, "admin.put", catalog.AdminPut{Tenant: firstTenant, Data: &catalog.Data{Key: state.DataAlone, Value: json.RawMessage("null")}})
	}
	rows, _ := n.directory.Rows(firstTenant)
	if slices.ContainsFunc(rows.APIKeys, func(k catalog.APIKey) bool { return k.ID == personKey }) {
		return nil
	}
	key := keydir.NewAPIKey()
	if err := durable.Write(datadir.PersonKeyFile(n.cfg.Dir), []byte(key+"\n")); err != nil {
		return err
	}
	return n.operator(ctx, "admin.put", catalog.AdminPut{Tenant: firstTenant, APIKey: &catalog.APIKey{
		ID: personKey, Hash: intents.Digest([]byte(key)), UserID: firstUser, MaxRoles: state.RolesAlone, InPerson: true,
	}})
}
