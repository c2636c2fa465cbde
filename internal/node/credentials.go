package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
)

// openCatalog reads the rows of the catalog directory, before anything is decided.
func (n *Node) openCatalog(context.Context) (err error) {
	n.catalog, err = catalog.Open(n.cfg.Catalog)
	return err
}

// admitExternal lets external executors and readers of events in that are not revoked. It leaves out types that
// are not in the catalog or belong to another executor, because the catalog may have
// changed since the credentials were issued. It also leaves out executors whose file
// cannot be read, so one bad file does not delay the revocation of others.
func (n *Node) admitExternal() error {
	known, unread := datadir.Executors.List(n.cfg.Dir)
	readers, others := datadir.EventReaders.List(n.cfg.Dir)
	var in []natsserver.External
	for _, o := range known {
		var types []string
		for _, typ := range o.Types {
			if r, ok := n.catalog.Lookup(typ); ok && r.Vendor() && r.Executor == o.Name {
				types = append(types, typ)
			}
		}
		if o.Revoked == nil && strings.HasPrefix(o.Name, "x-") && len(types) > 0 {
			in = append(in, natsserver.External{Name: o.Name, NKey: o.NKey, Types: types})
		}
	}
	for _, o := range readers {
		if o.Revoked == nil {
			in = append(in, natsserver.External{Name: bus.EventReader(o.Name), NKey: o.NKey})
		}
	}
	return errors.Join(unread, others, n.server.SetExternal(in))
}

// notAdmitted is logged: one bad file excludes its executor and does not prevent the start of the
// node.
const notAdmitted = "credentials of executors or readers cannot be read; these cannot connect"

// externalPoll is how often the node looks for credentials that were issued or revoked.
const externalPoll = 500 * time.Millisecond

// followExternal applies the changes of `writ admin executor issue` and `revoke`. It logs an error
// once; the start has logged the first one.
func (n *Node) followExternal(ctx context.Context) error {
	logged := fmt.Sprint(n.admitExternal())
	return clock.Loop(ctx, externalPoll, func() {
		err := n.admitExternal()
		if text := fmt.Sprint(err); text != logged {
			logged = text
			if err != nil {
				n.cfg.Log.ErrorContext(ctx, notAdmitted, slog.String("error", text))
			}
		}
	})
}

// listenerTLS reads the certificate of the NATS listener; no path: nil.
func listenerTLS(cert, key string) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the NATS listener: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
