package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// InlineLimit is the one rule for results: below 50,000 bytes (decimal, of the
// JSON or text as received) a result travels inline, from there on by reference.
const InlineLimit = 50_000

// Scope is the step, or the ask of another agent in it, that owns temporary data: files of one scope are visible
// only within it and are wiped when the step ends.
type Scope struct {
	Tenant   string
	Plan     string
	Revision int
	Step     int
	Ask      string // empty: the step itself
}

// At is the scope of another step of the same plan; 0: s itself.
func (s Scope) At(step int) Scope {
	if step != 0 {
		s.Step = step
	}
	return s
}

// TurnScope is the scope of an intent outside any plan: its turn. No plan has this name.
func TurnScope(tenant, turn string) Scope { return Scope{Tenant: tenant, Plan: "turn " + turn} }

// File is a stored temporary file.
type File struct {
	ID     string // identifier, [A-Za-z0-9_.-]{1,64}
	Size   int64
	SHA256 string // "sha256:<hex>"
}

// Blobs stores bytes: temporary files of a step, and content-addressed blobs of
// a tenant. Safe for concurrent use. Put and Keep are durable when they return;
// a crash inside leaves a partial file that the next Sweep removes. Stored blobs are
// removed only by Collect, if the store is a Collector.
type Blobs interface {
	// Put streams a temporary file into a scope. The id derives from the
	// content and scope, so the same bytes twice are one file.
	Put(ctx context.Context, s Scope, r io.Reader) (File, error)
	// Open reads one of the scope's files; ErrNotFound for any other's.
	Open(ctx context.Context, s Scope, id string) (io.ReadCloser, File, error)
	// Wipe removes a scope. Missing is fine.
	Wipe(ctx context.Context, s Scope) error
	// Sweep removes scopes that nothing was written to for longer than age, and partial files.
	Sweep(ctx context.Context, age time.Duration) (removed int, err error)

	// Keep stores a blob under its digest for a tenant; ref is "cas://sha256:<hex>".
	Keep(ctx context.Context, tenant string, r io.Reader) (ref string, size int64, err error)
	// Fetch reads a tenant's blob; its digest is checked while reading (the last
	// Read fails on a mismatch). ErrNotFound for another tenant's.
	Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error)
}

// SystemTenant has the blobs that are of no tenant: policies, catalogs and registries.
const SystemTenant = "system"

// ReadSystem reads a blob of SystemTenant whole, by its digest.
func ReadSystem(ctx context.Context, blobs Blobs, digest string) ([]byte, error) {
	f, _, err := blobs.Fetch(ctx, SystemTenant, "cas://"+digest)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// KeepSystem stores content as a blob of SystemTenant under its digest, unless it exists.
func KeepSystem(ctx context.Context, blobs Blobs, content []byte, digest string) error {
	f, _, err := blobs.Fetch(ctx, SystemTenant, "cas://"+digest)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	ref, _, err := blobs.Keep(ctx, SystemTenant, bytes.NewReader(content))
	if err == nil && ref != "cas://"+digest {
		err = fmt.Errorf("content was stored as %s, not as %s", ref, digest)
	}
	return err
}

// Collector removes blobs that nothing names. What was stored, or stored again,
// within age is young and remains.
type Collector interface {
	// ListOld lists the tenant's blobs that are not young.
	ListOld(ctx context.Context, tenant string, age time.Duration) (refs []string, err error)
	// Drop removes a blob unless it is young by now, durably. Missing is false.
	Drop(ctx context.Context, tenant, ref string, age time.Duration) (bool, error)
}

// Collect removes the blobs of tenants that are older than age and that no
// record names. A record names a blob if its digest occurs anywhere in a part: in
// policies, catalogs, scripts, arguments, inputs or results. Erased parts do not count,
// and blobs that only another blob names are not found: the tenant of policies and
// catalogs must not be among the tenants.
//
// It continues after an error of one blob. A record that names a blob for the
// first time while Collect runs finds it removed unless the blob was stored again
// meanwhile; age must be longer than an intent may live. A crash leaves every
// blob whole or removed.
func Collect(ctx context.Context, c Collector, records Records, tenants []string, age time.Duration) (removed int, failed error) {
	type blob struct{ tenant, ref string }
	aged := make(map[string][]blob) // by digest
	for _, tenant := range tenants {
		refs, err := c.ListOld(ctx, tenant, age)
		if err != nil {
			return 0, err
		}
		for _, ref := range refs {
			digest := strings.TrimPrefix(ref, "cas://")
			aged[digest] = append(aged[digest], blob{tenant, ref})
		}
	}
	if len(aged) == 0 {
		return 0, nil
	}
	// Until none is new: the scan yields what was durable when it began.
	for next := int64(0); next < records.Next(); {
		for r, err := range records.Scan(ctx, next) {
			if err != nil {
				return 0, err
			}
			for _, digest := range r.Digests() {
				delete(aged, digest)
			}
			next = r.Position + 1
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
	for _, blobs := range aged {
		for _, b := range blobs {
			gone, err := c.Drop(ctx, b.tenant, b.ref, age)
			if gone {
				removed++
			}
			failed = errors.Join(failed, err)
		}
	}
	return removed, failed
}

// Holding records that an intent needs a blob of its tenant.
type Holding struct {
	Tenant   string
	Digest   string // "sha256:<hex>"
	Position int64  // of the intent
}
