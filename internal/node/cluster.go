package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/storage/ledger"
)

// BusAt says where a NATS cluster is, and as whom a process connects.
type BusAt struct {
	URLs     []string // nats://host:port or tls://host:port
	CA       []byte   // PEM; empty: the CAs of the machine
	Seeds    string   // directory of the connections' keys, which writ accounts made
	Instance string   // name of the process, as writ accounts was told
}

// Validate says what is wrong, without connecting.
func (b BusAt) Validate() error {
	for _, u := range b.URLs {
		if scheme, host, ok := strings.Cut(u, "://"); !ok || scheme != "nats" && scheme != "tls" || host == "" || strings.ContainsAny(host, "@,/ ") {
			return fmt.Errorf("bus: %q is neither nats://host:port nor tls://host:port", u)
		}
	}
	switch {
	case len(b.URLs) == 0:
		return errors.New("bus: name the NATS cluster with --bus, once for each server")
	case b.Seeds == "":
		return errors.New("bus_keys: name the directory of the connections' keys with --bus-keys: writ accounts makes them")
	case !instance.MatchString(b.Instance):
		return fmt.Errorf("instance: %q is not a name of a-z, 0-9, _ and -: it is the NAME that writ accounts was told", b.Instance)
	}
	return nil
}

// Connect as a process of a role, with the keys of its connections.
func (b BusAt) Connect(ctx context.Context, role string) (bus.Conn, error) {
	asks, serves, err := natsserver.Connections(role, executorTypes())
	if err != nil {
		return nil, err
	}
	var conns []bus.Conn
	for _, c := range []struct {
		there  bool
		suffix string
	}{{asks, "asks"}, {serves, "serves"}} {
		if !c.there {
			continue
		}
		conn, err := b.connect(ctx, role, c.suffix)
		if err != nil {
			for _, c := range conns {
				c.Close()
			}
			return nil, err
		}
		conns = append(conns, conn)
	}
	if len(conns) == 1 {
		return conns[0], nil
	}
	return bus.Join(conns[0], conns[1]), nil
}

func (b BusAt) connect(ctx context.Context, role, suffix string) (bus.Conn, error) {
	file := seedFile(b.Seeds, role, b.Instance, suffix)
	seed, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return nil, fmt.Errorf("bus_keys: %w: writ accounts --process %s:%s makes it", err, role, b.Instance)
	}
	o := bus.Options{
		URL: strings.Join(b.URLs, ","), User: bus.ProcessUser(role, b.Instance), Seed: strings.TrimSpace(string(seed)), Instance: b.Instance,
	}
	if len(b.CA) > 0 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(b.CA) {
			return nil, errors.New("bus_ca: holds no PEM certificate")
		}
		o.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	conn, err := bus.Connect(ctx, o)
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		err = fmt.Errorf("bus_ca: %w: name the file of the CA that signed the certificates of the NATS servers with --bus-ca", err)
	}
	return conn, err
}

// seedFile is where writ accounts keeps the key of a connection.
func seedFile(dir, role, instance, suffix string) string {
	return filepath.Join(dir, role+"_"+instance+"_"+suffix+".seed")
}

// connector connects processes of roles: the server in this process, or a cluster.
type connector interface {
	Connect(ctx context.Context, role string) (bus.Conn, error)
}

// openKeys reads the keys of the roles. It makes none.
func (n *Node) openKeys(context.Context) (err error) {
	dirs := n.cfg.Cluster.Keys
	if n.published, err = openPublished(dirs); err != nil {
		return err
	}
	n.trust = n.published
	signs := n.signers()
	if len(signs) == 0 {
		return nil
	}
	ring := &keyring{
		read: func() (keydir.Held, error) { return heldIn(dirs) }, trust: n.published, roles: signs, log: n.cfg.Log,
	}
	n.keys, err = ring.open()
	return err
}

// joinCluster connects the process where its roles are on the bus. A router makes what the
// cell has there.
func (n *Node) joinCluster(ctx context.Context) error {
	n.bus = n.cfg.Cluster.Bus
	if !n.has(natsserver.Router) {
		return nil
	}
	core, err := n.connect(ctx, natsserver.Router)
	if err == nil {
		err = errors.Join(bus.EnsureFrames(ctx, core), bus.EnsureCell(ctx, core))
	}
	return err
}

// given is the path of a file of the roles' directories.
func (n *Node) given(name string) (string, error) {
	for _, dir := range n.cfg.Cluster.Keys {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path, err
		}
	}
	return "", fmt.Errorf("keys: %s is in none of %s: writ cell create makes it for the roles that need it", name, strings.Join(n.cfg.Cluster.Keys, ", "))
}

// givenSecret reads a secret of the roles' directories.
func (n *Node) givenSecret(name string) ([]byte, error) {
	path, err := n.given(name)
	if err != nil {
		return nil, err
	}
	return ledger.ReadSecret(path)
}

// Names of the secrets of a cell, in the directories of the roles that need them.
const (
	tagsName  = "tags"  // that tags of tenants are derived from
	linksName = "links" // that links to artifacts are made with
)

// tagSecret is what tags of tenants are derived from.
func (n *Node) tagSecret() ([]byte, error) {
	if n.alone() {
		return ledger.CreateSecret(datadir.Tags(n.cfg.Dir))
	}
	return n.givenSecret(tagsName)
}
