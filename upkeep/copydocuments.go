package upkeep

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage"
)

// CopyReport compares an index of a tenant in both stores. Scripts rely on its format.
type CopyReport struct {
	Tenant    string `json:"tenant"`
	Index     string `json:"index"`
	Documents int64  `json:"documents"` // of the source
	Digest    string `json:"digest"`
	Copied    int64  `json:"copied"` // found in the target afterwards
	OK        bool   `json:"ok"`     // the same documents at the same positions
}

// Place of documents: in an OpenSearch, or in a data directory.
type Place struct {
	Dir    string
	Remote datadir.DocumentsAt // its URL is empty for a directory
}

// ErrTargetHolds says that a target has documents already.
var ErrTargetHolds = errors.New("holds documents already: empty it, or go on with a copy that was cut off with --resume")

// CopyDocuments copies the documents of all tenants that the journal of dir has made, and compares
// both stores by count and digest. No node may use either store. A target that has documents is
// refused, unless resume is set: then documents at the same position stay, and any other difference
// is found.
//
// Crash: some documents are written. With resume the rest is written.
func CopyDocuments(ctx context.Context, dir string, from, to Place, resume bool) (out []CopyReport, err error) {
	rebuilt, err := rebuildState(ctx, dir)
	if err != nil {
		return nil, err
	}
	tenants := rebuilt.Tenants()
	var held []io.Closer
	defer func() {
		for _, c := range slices.Backward(held) {
			err = errors.Join(err, c.Close())
		}
	}()
	if _, err := os.Stat(datadir.DocumentsFile(from.Dir)); from.Remote.URL == "" && err != nil {
		return nil, err
	}
	source, err := from.open(ctx, &held)
	if err != nil {
		return nil, err
	}
	target, err := to.open(ctx, &held)
	if err != nil {
		return nil, err
	}
	for _, store := range []datadir.Documents{source, target} {
		if err := seeAll(ctx, store); err != nil {
			return nil, err
		}
	}
	if err := mayFill(ctx, target, tenants, resume); err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		for _, index := range storage.Indices {
			c := CopyReport{Tenant: tenant, Index: index}
			if c.Documents, c.Digest, err = walk(ctx, source, tenant, index, target); err != nil {
				return out, err
			}
			out = append(out, c)
		}
	}
	return out, compareCopies(ctx, target, out)
}

func compareCopies(ctx context.Context, target datadir.Documents, out []CopyReport) error {
	if err := seeAll(ctx, target); err != nil {
		return err
	}
	for i := range out {
		c := &out[i]
		n, digest, err := walk(ctx, target, c.Tenant, c.Index, nil)
		if err != nil {
			return err
		}
		c.Copied, c.OK = n, n == c.Documents && digest == c.Digest
	}
	return nil
}

// open opens a place for one command and locks a directory, so that no node uses it.
func (p Place) open(ctx context.Context, held *[]io.Closer) (datadir.Documents, error) {
	if p.Remote.URL == "" {
		if err := os.MkdirAll(p.Dir, 0o700); err != nil {
			return nil, err
		}
		lock, err := datadir.Lock(p.Dir)
		if err != nil {
			return nil, err
		}
		*held = append(*held, lock)
	}
	d, err := openDocuments(ctx, p.Dir, p.Remote)
	if err == nil {
		*held = append(*held, d)
	}
	return d, err
}

// seeAll makes all writes to a store visible to searches.
func seeAll(ctx context.Context, d datadir.Documents) error {
	if store, lags := d.(storage.Refresher); lags {
		return store.Refresh(ctx, storage.Indices...)
	}
	return nil
}

func mayFill(ctx context.Context, target storage.Documents, tenants []string, resume bool) error {
	if resume {
		return nil
	}
	for _, tenant := range tenants {
		for _, index := range storage.Indices {
			page, err := target.Search(ctx, tenant, index, storage.Query{Limit: 1})
			if err != nil {
				return err
			}
			if len(page.Documents) > 0 {
				return fmt.Errorf("%s of %s in the target %w", index, tenant, ErrTargetHolds)
			}
		}
	}
	return nil
}

// walk reads an index of a tenant, writes it to a store unless that is nil, and returns how many
// documents there are and the digest over id, position and canonical body of all, in any order of
// the store.
func walk(ctx context.Context, from storage.Documents, tenant, index string, to storage.Documents) (n int64, digest string, err error) {
	var sums [][sha256.Size]byte
	err = eachPage(ctx, from, tenant, index, func(docs []storage.Document) error {
		if to != nil {
			if err := put(ctx, to, tenant, index, docs); err != nil {
				return err
			}
		}
		for _, doc := range docs {
			sum, err := sumOf(doc)
			if err != nil {
				return fmt.Errorf("%s of %s: document %s: %w", index, tenant, doc.ID, err)
			}
			sums = append(sums, sum)
		}
		return nil
	})
	if err != nil {
		return 0, "", err
	}
	slices.SortFunc(sums, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	h := sha256.New()
	for _, sum := range sums {
		h.Write(sum[:])
	}
	return int64(len(sums)), "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func sumOf(doc storage.Document) ([sha256.Size]byte, error) {
	body, err := intents.Canonical(doc.Body)
	raw := binary.BigEndian.AppendUint64(nil, uint64(doc.Position)) //nolint:gosec // G115: bits for a digest
	raw = binary.BigEndian.AppendUint64(raw, uint64(len(doc.ID)))
	return sha256.Sum256(append(append(raw, doc.ID...), body...)), err
}
