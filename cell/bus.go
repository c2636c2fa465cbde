package cell

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
)

// Bus is the location of a NATS cluster, and the identity of the connecting process.
type Bus struct {
	URLs     []string // nats://host:port or tls:// nats://host:port or tls://host:port
	CA       []byte   // PEM; empty: the CAs of the machine
	Seeds    string   // directory of the connections' keys, made by writ admin cell accounts
	Instance string   // name of the process, as given to writ admin cell accounts
}

// Validate returns what is wrong, without connecting.
func (b Bus) Validate() error {
	for _, u := range b.URLs {
		if scheme, host, ok := strings.Cut(u, "://"); !ok || scheme != "nats" && scheme != "tls" || host == "" || strings.ContainsAny(host, "@,/ ") {
			return fmt.Errorf("bus: %q is neither nats://host:port nor tls://host:port", u)
		}
	}
	switch {
	case len(b.URLs) == 0:
		return errors.New("bus: name the NATS cluster with --bus, once for each server")
	case b.Seeds == "":
		return errors.New("bus_keys: name the directory of the connections' keys with --bus-keys: writ admin cell accounts makes them")
	case !instance.MatchString(b.Instance):
		return fmt.Errorf("instance: %q is not a name of a-z, 0-9, _ and -: it is the NAME that writ admin cell accounts was told", b.Instance)
	}
	return nil
}

// Connect connects as a process of a role, with the keys of its connections.
func (b Bus) Connect(ctx context.Context, role string) (bus.Conn, error) {
	asks, serves, err := natsserver.Connections(role, catalog.Executors())
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

func (b Bus) connect(ctx context.Context, role, suffix string) (bus.Conn, error) {
	file := seedFile(b.Seeds, role, b.Instance, suffix)
	seed, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return nil, fmt.Errorf("bus_keys: %w: writ admin cell accounts --process %s:%s makes it", err, role, b.Instance)
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
	return bus.Connect(ctx, o)
}

// seedFile is the file where writ admin cell accounts stores the key of a connection.
func seedFile(dir, role, instance, suffix string) string {
	return filepath.Join(dir, role+"_"+instance+"_"+suffix+".seed")
}

// Status is what a cell reports about itself.
type Status struct {
	Origin string `json:"origin"`
	bus.Cell
}

// StatusOf asks a cell for its status, as one of its routers. keys are the directories of the
// router's keys.
func StatusOf(ctx context.Context, b Bus, keys []string) (s Status, err error) {
	p, err := OpenPublished(keys)
	if err != nil {
		return s, err
	}
	conn, err := b.Connect(ctx, natsserver.Router)
	if err != nil {
		return s, err
	}
	defer conn.Close()
	s.Origin = p.Origin()
	s.Cell, err = bus.LookAtCell(ctx, conn)
	return s, err
}

var instance = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Accounts makes the configuration of a NATS cluster for processes, each given as ROLE:NAME with a
// unique name. The key of each connection is a seed in the directory dir, made if it is missing, so
// that processes may be added later. made lists the files of new seeds. outside are external
// executors with their types: each has one key for any number of processes.
func Accounts(processes []string, outside map[string][]string, dir string) (config []byte, made []string, err error) {
	var members []natsserver.Member
	var outsiders []natsserver.External
	seed := func(file string) (public string, err error) {
		public, isNew, err := seedIn(file)
		if err == nil && isNew {
			made = append(made, file)
		}
		return public, err
	}
	for _, name := range slices.Sorted(maps.Keys(outside)) {
		if !datadir.Executors.Valid(name) {
			return nil, nil, fmt.Errorf("executor %q: a vendor's executor is called x-<vendor> or x-<vendor>-<name>", name)
		}
		public, err := seed(filepath.Join(dir, name+".seed"))
		if err != nil {
			return nil, nil, err
		}
		outsiders = append(outsiders, natsserver.External{Name: name, NKey: public, Types: outside[name]})
	}
	seen := map[string]bool{}
	for _, p := range processes {
		role, name, _ := strings.Cut(p, ":")
		named := instance.MatchString(name)
		if role == natsserver.Hearer {
			named = datadir.EventReaders.Valid(name)
		}
		if !named || seen[p] {
			return nil, nil, fmt.Errorf("process %q: write ROLE:NAME, with a name of its own of a-z, 0-9, _ and -; hearers are called TENANT_NAME", p)
		}
		seen[p] = true
		asks, serves, err := natsserver.Connections(role, catalog.Executors())
		if err != nil {
			return nil, nil, fmt.Errorf("process %q: there is no role %q: roles are gateway, frames, manager, planner, task, workflow, router, recorder, teller, hearer and the executors of writ catalog", p, role)
		}
		m := natsserver.Member{Role: role, Instance: bus.EventReader(name)} // only readers have dots
		for _, c := range []struct {
			there  bool
			suffix string
			public *string
		}{{asks, "asks", &m.Asks}, {serves, "serves", &m.Serves}} {
			if !c.there {
				continue
			}
			if *c.public, err = seed(seedFile(dir, role, name, c.suffix)); err != nil {
				return nil, nil, err
			}
		}
		members = append(members, m)
	}
	config, err = natsserver.Cluster(catalog.Executors(), members, outsiders...)
	return config, made, err
}

// seedIn returns the public key of the seed in a file, and makes the file if it is missing.
func seedIn(file string) (public string, made bool, err error) {
	raw, err := os.ReadFile(file) //nolint:gosec // G304: the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		seed, public, err := bus.NewNKey()
		if err == nil {
			err = durable.MkdirAll(filepath.Dir(file))
		}
		if err == nil {
			err = durable.Write(file, []byte(seed+"\n"))
		}
		return public, true, err
	}
	if err == nil {
		if public, err = bus.PublicNKey(strings.TrimSpace(string(raw))); err != nil {
			err = fmt.Errorf("%s: %w: remove it, and a new one is made", file, err)
		}
	}
	return public, false, err
}
