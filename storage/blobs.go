package storage

import (
	"context"
	"io"
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

// TurnScope is of an order outside any plan: its turn. No plan is called so.
func TurnScope(tenant, turn string) Scope { return Scope{Tenant: tenant, Plan: "turn " + turn} }

// File is a stored temporary file.
type File struct {
	ID     string // identifier, [A-Za-z0-9_.-]{1,64}
	Size   int64
	SHA256 string // "sha256:<hex>"
}

// Blobs keeps bytes: temporary files of a step, and content-addressed blobs of
// a tenant. Safe for concurrent use. Put and Keep are durable when they return;
// a crash inside leaves a partial file that the next Sweep removes. Kept blobs are
// removed by Collect alone, where the store is a Collector.
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
