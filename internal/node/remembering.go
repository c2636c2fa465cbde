package node

import (
	"context"
	"time"

	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

// remembering is a store for the recorder: what a retention may have removed is
// not made again, be it that the recorder goes over old records or is late.
type remembering struct {
	storage.Documents
	directory *router.Directory
	now       func() time.Time
}

// Project implements storage.Documents.
func (r remembering) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	before := r.directory.Removed(tenant, index, r.now())
	p.Put, p.Created = storage.Younger(index, p.Put, before), storage.Younger(index, p.Created, before)
	return r.Documents.Project(ctx, tenant, index, p)
}
