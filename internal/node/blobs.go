package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
	"aob.dev/writ/storage/blobnats"
	"aob.dev/writ/storage/blobs3"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/quota"
	"aob.dev/writ/storage/sqlite"
)

// Blobs says where blobs are. A data directory remembers where its own are, so
// that every command finds them; the zero value is that place, and of a new
// directory it is the directory.
type Blobs struct {
	// URL is InDir, nats://… or tls://… (storage/blobnats), or s3://… (storage/blobs3).
	URL string `json:"url"`
	// Credentials and CA are files, of that server; empty: those of its package.
	Credentials string `json:"credentials,omitempty"`
	CA          string `json:"ca,omitempty"`
}

// InDir is the place of blobs that are in the data directory.
const InDir = "dir"

// blobs is a store of blobs and what the node does with it besides.
type blobs = quota.Store

// DefaultTenantDisk is how many bytes one tenant may hold.
const DefaultTenantDisk = 10 << 30

// bounded blobs leave room for orders, and for other tenants. What is uploaded
// stops at twice the floor of orders, so that those go on.
func (n *Node) bounded(of blobs) *quota.Blobs {
	l := quota.Limits{
		Free:  func() (int64, error) { return sqlite.Free(n.cfg.Dir) },
		Floor: 2 * cmp.Or(n.cfg.Limits.FreeFloor, sqlite.DefaultFreeFloor), Tenant: cmp.Or(n.cfg.Limits.TenantDisk, DefaultTenantDisk),
		Exempt: ledger.SystemTenant,
	}
	return quota.New(of, l)
}

type inDir struct{ *blobdir.Blobs }

// Close implements blobs.
func (inDir) Close() error { return nil }

// local: no server is asked.
func (at Blobs) local() bool { return at.URL == "" || at.URL == InDir }

func (at Blobs) nats() (blobnats.Config, error) {
	ca, err := at.ca()
	return blobnats.Config{URL: at.URL, Credentials: at.Credentials, CA: ca}, err
}

func (at Blobs) s3() (blobs3.Config, error) {
	ca, err := at.ca()
	return blobs3.Config{URL: at.URL, Credentials: at.Credentials, CA: ca}, err
}

func (at Blobs) ca() ([]byte, error) {
	if at.CA == "" {
		return nil, nil
	}
	return os.ReadFile(at.CA)
}

// Validate says what is wrong with a place, without asking a server.
func (at Blobs) Validate() error {
	if at.local() {
		if at.Credentials != "" || at.CA != "" {
			return errors.New("credentials and certificates are of a server, and blobs names none")
		}
		return nil
	}
	var err error
	switch scheme, _, _ := strings.Cut(at.URL, "://"); scheme {
	case "nats", "tls":
		var cfg blobnats.Config
		if cfg, err = at.nats(); err == nil {
			err = cfg.Validate()
		}
	case "s3":
		var cfg blobs3.Config
		if cfg, err = at.s3(); err == nil {
			err = cfg.Validate()
		}
	default:
		err = errors.New(`it is none of "dir", nats://…, tls://… and s3://…`)
	}
	return err
}

// open a place. dir is the data directory.
func (at Blobs) open(ctx context.Context, dir string) (blobs, error) {
	switch scheme, _, _ := strings.Cut(at.URL, "://"); {
	case at.local():
		b, err := blobdir.Open(filepath.Join(dir, "blobs"))
		return inDir{b}, err
	case scheme == "s3":
		cfg, err := at.s3()
		if err != nil {
			return nil, err
		}
		cfg.Spool = filepath.Join(dir, "blobs", "spool")
		if err := os.MkdirAll(cfg.Spool, 0o700); err != nil {
			return nil, err
		}
		b, err := blobs3.Open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return b, nil
	default:
		cfg, err := at.nats()
		if err != nil {
			return nil, err
		}
		b, err := blobnats.Open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}

// look whether a server answers and can keep blobs. Nothing is made.
func (at Blobs) look(ctx context.Context) error {
	if strings.HasPrefix(at.URL, "s3://") {
		cfg, err := at.s3()
		if err != nil {
			return err
		}
		b, err := blobs3.Open(ctx, cfg)
		if err != nil {
			return err
		}
		return b.Close()
	}
	cfg, err := at.nats()
	if err != nil {
		return err
	}
	return blobnats.Look(ctx, cfg)
}

// placeFile is where a directory remembers its place, if that is another.
func placeFile(dir string) string { return filepath.Join(dir, "blobs", "place.json") }

// placeOf a directory's blobs, as it remembers it.
func placeOf(dir string) (at Blobs, err error) {
	raw, err := os.ReadFile(placeFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return Blobs{URL: InDir}, nil
	}
	if err != nil {
		return at, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&at); err != nil {
		return at, fmt.Errorf("%s: %w", placeFile(dir), err)
	}
	return at, at.Validate()
}

// remember a place, durably.
func (at Blobs) remember(dir string) error {
	file := placeFile(dir)
	if at.local() {
		return durable.Remove(file)
	}
	raw, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(file)); err != nil {
		return err
	}
	return durable.Write(file, append(raw, '\n'))
}

// of is where a directory's blobs are, once a configuration has been asked: it may
// name other credentials, but another place only of a directory that has no blobs.
func (at Blobs) of(dir string) (Blobs, error) {
	held, err := placeOf(dir)
	if err != nil || at.URL == "" {
		return held, err
	}
	if held.URL == at.URL {
		return at, nil
	}
	if held.local() {
		kept, _, err := below(filepath.Join(dir, "blobs", "cas"))
		if err != nil || kept == 0 {
			return at, err
		}
	}
	return at, fmt.Errorf("the blobs of %s are in %s, not in %s: bring them there with writ storage move, or leave blobs as it was", dir, held.URL, at.URL)
}

func (n *Node) openBlobs(ctx context.Context) error {
	at, err := n.cfg.Blobs.of(n.cfg.Dir)
	if err != nil {
		return err
	}
	held, err := placeOf(n.cfg.Dir)
	if err != nil {
		return err
	}
	opened, err := at.open(ctx, n.cfg.Dir)
	if err != nil {
		return err
	}
	n.blobs = n.bounded(opened)
	if at == held {
		return nil
	}
	return at.remember(n.cfg.Dir)
}

// openKept opens the blobs of a directory where it remembers them.
func openKept(ctx context.Context, dir string) (blobs, error) {
	at, err := placeOf(dir)
	if err != nil {
		return nil, err
	}
	return at.open(ctx, dir)
}

// lazyBlobs are those of a directory, for reading: their server is asked when
// something is read first. Safe for concurrent use.
type lazyBlobs struct {
	storage.Blobs // nil: nothing is written
	dir           string

	mu   sync.Mutex // guards open
	open blobs
}

func (l *lazyBlobs) get(ctx context.Context) (b blobs, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		if b, err = openKept(ctx, l.dir); err != nil {
			return nil, err
		}
		l.open = b
	}
	return l.open, nil
}

// Open implements storage.Blobs.
func (l *lazyBlobs) Open(ctx context.Context, s storage.Scope, id string) (io.ReadCloser, storage.File, error) {
	b, err := l.get(ctx)
	if err != nil {
		return nil, storage.File{}, err
	}
	return b.Open(ctx, s, id)
}

// Fetch implements storage.Blobs.
func (l *lazyBlobs) Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	b, err := l.get(ctx)
	if err != nil {
		return nil, 0, err
	}
	return b.Fetch(ctx, tenant, ref)
}

// Close ends what was opened.
func (l *lazyBlobs) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		return nil
	}
	return l.open.Close()
}
