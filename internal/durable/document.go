package durable

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// Store has one document with one writer: a file here, or a document of a cell (package bus).
type Store interface {
	// Get returns the document; nil: none was put.
	Get(ctx context.Context) ([]byte, error)
	// Put replaces it, and returns when that is durable.
	Put(ctx context.Context, doc []byte) error
}

// Document is a file with one document, which one process replaces whole.
type Document string

// Get returns the document; nil: none was put.
func (d Document) Get(context.Context) ([]byte, error) {
	doc, err := os.ReadFile(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return doc, err
}

// Put replaces it. A crash in it leaves one document or the other.
func (d Document) Put(_ context.Context, doc []byte) error { return Write(string(d), doc) }
