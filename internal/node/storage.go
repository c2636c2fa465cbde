package node

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
	"aob.dev/writ/storage/sqlite"
)

// upkeep is a data directory whose documents are open for one command: no node
// uses it meanwhile.
type upkeep struct {
	lock      *os.File
	records   *sqlite.Records
	documents documents
	directory *state.State // as of the whole journal
	tenants   []string     // of it
}

// openUpkeep takes the directory. The store of documents must answer.
func openUpkeep(ctx context.Context, dir string, at Documents) (u *upkeep, err error) {
	u = &upkeep{}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.Close())
		}
	}()
	if u.records, err = sqlite.OpenRecords(ctx, filepath.Join(dir, "journal")); err != nil {
		return u, err
	}
	if u.lock, err = lockDir(dir); err != nil {
		return u, err
	}
	if u.directory, err = foldOf(ctx, u.records); err != nil {
		return u, err
	}
	u.tenants = u.directory.Tenants()
	u.documents, err = openStore(ctx, dir, at)
	return u, err
}

// openStore opens documents that must answer now.
func openStore(ctx context.Context, dir string, at Documents) (documents, error) {
	n := &Node{cfg: Config{Dir: dir, Documents: at}}
	err := n.openDocuments(ctx)
	if err == nil && n.remote != nil {
		err = storage.ErrUnavailable
	}
	if err != nil && n.documents != nil {
		err = errors.Join(err, n.documents.Close())
	}
	if err != nil {
		return nil, err
	}
	return n.documents, nil
}

// lookAt opens an OpenSearch as it is: nothing is made there.
func lookAt(at Documents) (*opensearch.Documents, error) {
	at.Check = storage.NewCheck(cmp.Or(at.Dimension, storage.DefaultDimension))
	return opensearch.Open(at)
}

// tenantsOf a journal are all that it has made.
func tenantsOf(ctx context.Context, records storage.Records) ([]string, error) {
	fold, err := foldOf(ctx, records)
	return fold.Tenants(), err
}

func foldOf(ctx context.Context, records storage.Records) (*state.State, error) {
	fold := state.New()
	for rec, err := range records.Scan(ctx, 0) {
		if err != nil {
			return fold, err
		}
		fold.Observe(state.EntryOf(rec))
	}
	return fold, fold.Err()
}

// Close gives the directory back.
func (u *upkeep) Close() error {
	var errs []error
	if u.documents != nil {
		errs = append(errs, u.documents.Close())
	}
	if u.lock != nil {
		errs = append(errs, u.lock.Close())
	}
	if u.records != nil {
		errs = append(errs, u.records.Close())
	}
	return errors.Join(errs...)
}
