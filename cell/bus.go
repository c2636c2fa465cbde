package cell

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents/catalog"
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
