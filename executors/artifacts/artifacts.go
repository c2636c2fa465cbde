// Package artifacts stores data permanently and returns links to it: artifact.put and artifact.get
// over the blobs of the intent's tenant. A blob is retained as long as a record names it.
package artifacts

import (
	"context"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Name of the executor.
const Name = "artifacts"

// Config of the executor. All members are required.
type Config struct {
	Blobs storage.Blobs
	// Link returns a URL at which GET returns a blob of the reader's tenant until before, a whole
	// second, as long as the reader, who came through a client, may read it.
	Link func(reader intents.Principal, client, ref string, now time.Time) (link string, before time.Time, err error)
	Now  func() time.Time
}

// Handlers of the executor. They have no state: an artifact's name is its digest,
// so the same intent twice is one artifact.
func Handlers(cfg Config) map[string]executors.Handler {
	a := artifacts{cfg}
	return map[string]executors.Handler{"artifact.put": executors.WithArgs(a.put), "artifact.get": executors.WithArgs(a.get)}
}

type artifacts struct{ Config }

// put stores the data. Existing data is written again, so that a collector that has just found it
// unreferenced sees it as new.
func (a artifacts) put(ctx context.Context, o *executors.Intent, args catalog.ArtifactPut) (*executors.Result, error) {
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
func (a artifacts) get(ctx context.Context, o *executors.Intent, args catalog.ArtifactGet) (*executors.Result, error) {
	tenant := o.Ticket.Actor.Tenant
	blob, size, err := a.Blobs.Fetch(ctx, tenant, args.Artifact)
	if err != nil {
		return nil, executors.Store(err)
	}
	if err := blob.Close(); err != nil {
		return nil, executors.Store(err)
	}
	url, before, err := a.Link(o.Ticket.Actor, o.Ticket.Client, args.Artifact, a.Now())
	if err != nil {
		return nil, err
	}
	return &executors.Result{Value: catalog.ArtifactGetResult{Artifact: args.Artifact, SizeBytes: size, URL: url, ExpiresAt: before}}, nil
}
