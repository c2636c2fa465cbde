package datadir

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
	"aob.dev/writ/storage/sqlite"
)

// DocumentsAt is the place of documents: the OpenSearch at its URL or, without a URL, in
// the data directory. Its Check is set when it is opened.
type DocumentsAt = opensearch.Config

// Documents is a store that can be closed.
type Documents interface {
	storage.Documents
	Close() error
}

// OpenDocuments opens the documents of a directory. cache is the page cache of a store in
// the directory, in bytes. An OpenSearch may be down; the caller must call Migrate.
func OpenDocuments(ctx context.Context, dir string, at DocumentsAt, cache int64) (Documents, error) {
	if at.URL != "" {
		d, err := RemoteDocuments(at)
		if err != nil {
			return nil, err // not d: as an interface it would not be nil
		}
		return d, nil
	}
	dimension := cmp.Or(at.Dimension, storage.DefaultDimension)
	d, err := sqlite.OpenDocumentsWithin(ctx, DocumentsFile(dir), storage.NewCheck(dimension), cache)
	if err != nil {
		return nil, err
	}
	if err := sameDimension(ctx, d, dimension); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// RemoteDocuments opens an OpenSearch as it is. It creates nothing there.
func RemoteDocuments(at DocumentsAt) (*opensearch.Documents, error) {
	at.Check = storage.NewCheck(cmp.Or(at.Dimension, storage.DefaultDimension))
	return opensearch.Open(at)
}

// sameDimension checks the dimension of stored vectors: vectors of another dimension would
// never be compared. An OpenSearch checks it itself.
func sameDimension(ctx context.Context, d *sqlite.Documents, dimension int) error {
	stored, err := d.Dimension(ctx)
	if err == nil && stored != 0 && stored != dimension {
		err = fmt.Errorf("vector_dimension: is %d, and the store holds vectors of %d numbers", dimension, stored)
	}
	return err
}
