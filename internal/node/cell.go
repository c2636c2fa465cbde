package node

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/storage/ledger"
)

// roleExecutors is the directory of what executors need beside their connections.
const roleExecutors = "executors"

// genesisName is the file with the genesis of a cell.
const genesisName = "genesis"

// CellKeys is the directory of a role's keys, below that of a cell.
func CellKeys(dir, role string) string { return filepath.Join(dir, role, "keys") }

// given says what each role of a cell is given beside the public keys: its private key and
// its secret.
var given = map[string]struct {
	key    intents.Role
	secret string
}{
	natsserver.Gateway: {intents.RoleGateway, linksName}, natsserver.Router: {key: intents.RoleRouter}, natsserver.Recorder: {intents.RoleLedger, tagsName},
	natsserver.Manager: {key: intents.RoleManager}, natsserver.Planner: {key: intents.RolePlanner}, natsserver.Workflow: {key: intents.RoleWorkflow},
	natsserver.Task: {}, roleMonitor: {}, roleExecutors: {secret: linksName},
	string(intents.RoleOperator): {key: intents.RoleOperator}, string(intents.RoleRoot): {key: intents.RoleRoot},
}

// CreateCell makes the keys of a cell and its genesis in a directory that must not exist:
// for each role a directory with its own key alone, and the public ones. policy and types
// are those in force when the log begins.
//
// Crash: the directory is complete when it has its name.
func CreateCell(dir string, policy *policies.Engine, types *catalog.Catalog) (origin string, err error) {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return "", errors.Join(fmt.Errorf("%s is there already, and the keys of a cell are made once: name another directory", dir), err)
	}
	if err := durable.MkdirAll(filepath.Dir(dir)); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), ".cell-*")
	if err != nil {
		return "", err
	}
	if origin, err = createCell(made, policy, types); err != nil {
		return "", errors.Join(err, os.RemoveAll(made))
	}
	return origin, durable.Rename(made, dir)
}

func createCell(dir string, policy *policies.Engine, types *catalog.Catalog) (string, error) {
	all := filepath.Join(dir, ".all")
	keys, err := keydir.Create(all)
	if err != nil {
		return "", err
	}
	secret, err := ledger.CreateSecret(filepath.Join(all, tagsName))
	if err != nil {
		return "", err
	}
	links, err := linkKey(secret)
	if err != nil {
		return "", err
	}
	if err := durable.Write(filepath.Join(all, linksName), []byte(hex.EncodeToString(links)+"\n")); err != nil {
		return "", err
	}
	genesis, err := state.NewGenesis(keys[intents.RoleRoot], keys.KeySet(), policy.Digest(), types, state.HoldOnce("default"))
	if err != nil {
		return "", err
	}
	if err := durable.Write(filepath.Join(dir, genesisName), []byte(genesis)); err != nil {
		return "", err
	}
	set, err := publicKeys(genesis)
	if err != nil {
		return "", err
	}
	for role, of := range given {
		to := CellKeys(dir, role)
		if err := durable.MkdirAll(to); err != nil {
			return "", err
		}
		names := []string{}
		if of.key != "" {
			names = append(names, string(of.key)+".pem")
		}
		if of.secret != "" {
			names = append(names, of.secret)
		}
		for _, name := range names {
			raw, err := os.ReadFile(filepath.Join(all, name)) //nolint:gosec // G304: made above
			if err == nil {
				err = durable.Write(filepath.Join(to, name), raw)
			}
			if err != nil {
				return "", err
			}
		}
		if err := durable.Write(filepath.Join(to, jwksName), set); err != nil {
			return "", err
		}
	}
	return state.Origin(keys[intents.RoleRoot].Public()), os.RemoveAll(all)
}

// publicKeys are the first key set of a genesis, as a role's directory has it.
func publicKeys(genesis string) ([]byte, error) {
	g, err := state.OpenGenesis(genesis)
	if err != nil {
		return nil, err
	}
	root, err := g.RootJWK.ToKey()
	if err != nil {
		return nil, err
	}
	set, _, err := intents.OpenKeySet(g.KeySet, root.Public)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(intents.JWKS{Origin: g.Origin, Version: set.Version, Keys: set.Keys, KeySet: g.KeySet}, "", "  ")
}

// errNotBegun says that a cell has keys and no log.
var errNotBegun = errors.New("the log of the cell has not begun: writ cell begin begins it")

// began makes sure that the log has begun, and is the one that the keys are for.
func (n *Node) began(ctx context.Context) error {
	if n.has(natsserver.Router) {
		if err := n.keepVersions(ctx, n.policy.Engine()); err != nil {
			return err
		}
	}
	if n.journal.Next() == 0 {
		if n.cfg.Cluster.genesis == "" {
			return errNotBegun
		}
		if err := router.Begin(ctx, n.journal, n.cfg.Cluster.genesis, n.cfg.Now()); err != nil {
			return err
		}
	}
	if err := n.directory.Err(); err != nil {
		return err
	}
	if is, want := n.directory.Origin(), n.Origin(); is != want {
		return fmt.Errorf("keys: they are of the log %s, and the cell's is %s", want, is)
	}
	return nil
}

// BeginCell begins the log of a cell and has the first API key made, which it returns. It is
// a router for that moment. If the log has begun and has an API key, the key is empty.
//
// Crash: what was committed stays, and the same call goes on behind it.
func BeginCell(ctx context.Context, cfg Config, dir string) (key string, err error) {
	genesis, err := os.ReadFile(filepath.Join(dir, genesisName)) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return "", fmt.Errorf("%w: writ cell create makes it", err)
	}
	n, stop, err := CellAt{cfg, dir}.operate(ctx, string(genesis))
	if err != nil {
		return "", err
	}
	err = n.firstKey(ctx)
	return n.APIKey, errors.Join(err, stop())
}

// Status is what a cell says of itself.
type Status struct {
	Origin string `json:"origin"`
	bus.Cell
}

// lookCell is how long the routers of a cell have to answer.
const lookCell = 2 * time.Second

// CellStatus asks a cell, as one of its routers.
func CellStatus(ctx context.Context, c *Cluster) (s Status, err error) {
	p, err := openPublished(c.Keys)
	if err != nil {
		return s, err
	}
	conn, err := c.Bus.Connect(ctx, natsserver.Router)
	if err != nil {
		return s, err
	}
	defer conn.Close()
	s.Origin = p.Origin()
	s.Cell, err = bus.LookAtCell(ctx, conn, lookCell)
	return s, err
}
