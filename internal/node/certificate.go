package node

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"aob.dev/writ/internal/health"
)

// certificateAge is how long a certificate is used before its files are looked at again.
const certificateAge = time.Second

// certificate is that of a listener, from two PEM files. A handshake looks whether they have changed.
// Until both can be read again, the last pair stays in use.
type certificate struct {
	cert, key string // paths
	setting   string // of the first; also the name of the condition
	now       func() time.Time
	board     *health.Board
	log       *slog.Logger

	mu     sync.Mutex // guards what follows
	pair   *tls.Certificate
	stamp  string // of the files of pair
	looked time.Time
}

// listenerTLS secures a listener by a certificate; no path: nil.
func (n *Node) listenerTLS(cert, key, setting string) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	c := &certificate{cert: cert, key: key, setting: setting, now: n.cfg.Now, board: n.health, log: n.cfg.Log}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12}, nil
}

// get is the certificate of a handshake.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.looked).Abs() < certificateAge {
		return c.pair, nil
	}
	if err := c.load(); err == nil {
		c.board.Clear(c.setting)
	} else if c.board.Raise(health.Condition{Name: c.setting, Reason: "its changed files cannot be used; the last certificate stays in use", Do: "put a certificate and its key there (the log says what is wrong); writ reads them by itself"}) {
		c.log.Warn("the changed certificate is not used", slog.String("error", err.Error()))
	}
	return c.pair, nil
}

// load reads the files, if they have changed.
func (c *certificate) load() error {
	c.looked = c.now()
	stamp := ""
	for _, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("%s: %w", c.setting, err)
		}
		stamp += fmt.Sprintln(info.ModTime().UnixNano(), info.Size())
	}
	if stamp == c.stamp {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("%s: %w", c.setting, err)
	}
	c.pair, c.stamp = &pair, stamp
	return nil
}
