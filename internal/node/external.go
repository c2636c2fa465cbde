package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/internal/datadir"
)

// openCatalog reads the rows of the catalog directory, before anything is decided.
func (n *Node) openCatalog(context.Context) (err error) {
	n.catalog, err = catalog.Open(n.cfg.Catalog)
	return err
}

// admitExternal lets those in that are not revoked. Types that are not in the
// catalog, or another executor's, are left out: the catalog may have changed
// since they were issued. So are those whose file cannot be read: they keep
// nobody else's revocation from being taken up.
func (n *Node) admitExternal() error {
	known, unread := datadir.ExternalExecutors(n.cfg.Dir)
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
	return errors.Join(unread, n.server.SetExternal(in))
}

// notAdmitted: one bad file bars its executor, not the node.
const notAdmitted = "credentials of executors cannot be read; they are not let in"

// externalPoll is how often credentials that were issued or revoked are looked for.
const externalPoll = 500 * time.Millisecond

// followExternal takes up what `writ executor issue` and `revoke` wrote.
func (n *Node) followExternal(ctx context.Context) error {
	look := time.NewTicker(externalPoll)
	defer look.Stop()
	told := ""
	if err := n.admitExternal(); err != nil {
		told = err.Error() // at the start
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		text := ""
		if err := n.admitExternal(); err != nil {
			text = err.Error()
		}
		if text != "" && text != told {
			n.cfg.Log.ErrorContext(ctx, notAdmitted, slog.String("error", text))
		}
		told = text
	}
}

// listenerTLS reads the certificate of the NATS listener; nil without one.
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
