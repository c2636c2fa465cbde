// Package artifacts stores data permanently and gives links to it: artifact.put and
// artifact.get over the blobs of the order's tenant. A blob stays as long as a record
// names it.
package artifacts

import (
	"context"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Name of the executor.
const Name = "artifacts"

// LinkAge is how long a link from artifact.get gives the bytes.
const LinkAge = 15 * time.Minute

// Config of the executor. All members are required.
type Config struct {
	Blobs storage.Blobs
	// Link is an address at which GET gives a tenant's blob until before, a whole
	// second.
	Link func(tenant, ref string, before time.Time) (string, error)
	Now  func() time.Time
}

// Handlers of the executor. They keep no state: an artifact's name is its digest,
// so the same order twice is one artifact.
func Handlers(cfg Config) map[string]executors.Handler {
	a := artifacts{cfg}
	return map[string]executors.Handler{"artifact.put": executors.WithArgs(a.put), "artifact.get": executors.WithArgs(a.get)}
}

type artifacts struct{ Config }

// put stores the data. Data that is there already is written again, so that a
// collector which has just seen it without a name finds it new.
func (a artifacts) put(ctx context.Context, o *executors.Order, args catalog.ArtifactPut) (*executors.Result, error) {
	data, err := o.Content(ctx, a.Blobs, "/data", args.Data)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	ref, size, err := a.Blobs.Keep(ctx, o.Ticket.Actor.Tenant, data)
	if err != nil {
		return nil, executors.Store(err)
	}
	return &executors.Result{Value: catalog.ArtifactPutResult{Artifact: ref, SizeBytes: size, MediaType: args.MediaType, Name: args.Name}}, nil
}

// get gives an address of one of the tenant's blobs; another's does not exist.
func (a artifacts) get(ctx context.Context, o *executors.Order, args catalog.ArtifactGet) (*executors.Result, error) {
	tenant := o.Ticket.Actor.Tenant
	blob, size, err := a.Blobs.Fetch(ctx, tenant, args.Artifact)
	if err != nil {
		return nil, executors.Store(err)
	}
	if err := blob.Close(); err != nil {
		return nil, executors.Store(err)
	}
	before := a.Now().Add(LinkAge).UTC().Truncate(time.Second)
	url, err := a.Link(tenant, args.Artifact, before)
	if err != nil {
		return nil, err
	}
	return &executors.Result{Value: catalog.ArtifactGetResult{Artifact: args.Artifact, SizeBytes: size, URL: url, ExpiresAt: before}}, nil
}
