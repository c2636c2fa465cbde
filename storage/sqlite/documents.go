package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/group"
)

// purgeBatch is how many documents one transaction removes.
const purgeBatch = 500

// documentReaders is the number of connections that Get and Search share.
const documentReaders = 4

// Documents is storage.Documents in one SQLite file of its own. Writes of
// concurrent callers share a transaction, so one sync serves them all; each is
// judged by the fence on its own. A crash leaves a call's documents written
// together or not at all, with their search entries.
type Documents struct {
	store[*change]
	check storage.Check
	bare  bool // without entries

	spaces  names // used by the writer goroutine only
	members names // likewise
	scrubs  scrubs
}

var (
	_ storage.Documents = (*Documents)(nil)
	_ storage.UserKeys  = (*Documents)(nil)
)

// documentSchema: a space is one index of one tenant. Terms carry its number, and rows of text have
// it in front (textRow), so that a search never meets another tenant's entries. The
// column space of text is empty since.
//
// terms has one row per scalar member of a document, its key in the order that
// filters and sorting need. The writer updates it with the body. terms_row
// finds the terms of one document.
// text is contentless: it has the words, documents has the bodies. vectors has the
// embeddings, by space: a search compares with those of one tenant only. vocabulary is a view of the words in text.
// documents_ttl has what expires, for searches that read no body before its rank
// is known. made has the fields that terms, text and vectors were built from; see
// reindex. version is a new random number each time a document is written, so that a copy
// finds what has changed without reading bodies.
var documentSchema = []string{`
	CREATE TABLE spaces(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
	CREATE TABLE members(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
	CREATE TABLE documents(
		row INTEGER PRIMARY KEY, space INTEGER NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL,
		ttl INTEGER, body TEXT NOT NULL, UNIQUE(space, id)) STRICT;
	CREATE INDEX documents_position ON documents(space, position);
	CREATE TABLE terms(
		space INTEGER NOT NULL, member INTEGER NOT NULL, value ANY NOT NULL, row INTEGER NOT NULL,
		PRIMARY KEY(space, member, value, row)) STRICT, WITHOUT ROWID;
	CREATE VIRTUAL TABLE text USING fts5(
		space, words, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 0");
	INSERT INTO text(text, rank) VALUES ('rank', 'bm25(0.0, 1.0)')`, `
	CREATE TABLE vectors(
		space INTEGER NOT NULL, member INTEGER NOT NULL, row INTEGER NOT NULL, value BLOB NOT NULL,
		PRIMARY KEY(space, member, row)) STRICT;
	CREATE TABLE made(what TEXT PRIMARY KEY, by TEXT NOT NULL) STRICT, WITHOUT ROWID`, `
	CREATE INDEX documents_ttl ON documents(space, ttl) WHERE ttl IS NOT NULL`, `
	CREATE INDEX terms_row ON terms(row, member, value)`, `
	ALTER TABLE documents ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
	DROP INDEX documents_position;
	CREATE INDEX documents_position ON documents(space, position, row, version)`, `
	CREATE VIRTUAL TABLE vocabulary USING fts5vocab(text, row)`}

// OpenDocuments opens or creates the file. cache bounds its page caches together, in bytes; 0:
// DefaultCache. Three goroutines run until Close: the writer, the checkpointer, and one that scrubs.
// After a failed write or sync every later call fails until the file is opened again.
func OpenDocuments(ctx context.Context, path string, check storage.Check, cache int64) (*Documents, error) {
	return openDocuments(ctx, path, check, cmp.Or(cache, DefaultCache), false)
}

// OpenBareDocuments is OpenDocuments of a file that is never searched: its documents are found by id, and in
// pages of a whole index. Never open it otherwise.
func OpenBareDocuments(ctx context.Context, path string, check storage.Check) (*Documents, error) {
	return openDocuments(ctx, path, check, DefaultCache, true)
}

func openDocuments(ctx context.Context, path string, check storage.Check, cache int64, bare bool) (*Documents, error) {
	d, err := connectDocuments(ctx, path, check, cache)
	if err != nil {
		return nil, fmt.Errorf("open documents: %w", err)
	}
	if d.bare = bare; !bare {
		if err := d.reindex(ctx); err != nil {
			return nil, fmt.Errorf("open documents: %w", errors.Join(err, d.db.close()))
		}
	}
	if err := d.resumeScrub(ctx); err != nil {
		return nil, fmt.Errorf("open documents: %w", errors.Join(err, d.db.close()))
	}
	d.start(ctx, d.write)
	d.running.Go(func() { d.keepScrubbing(d.life) })
	return d, nil
}

// connectDocuments opens the file; nothing runs yet.
func connectDocuments(ctx context.Context, path string, check storage.Check, cache int64) (*Documents, error) {
	db, err := connect(ctx, path, documentReaders, cache, documentSchema)
	if err != nil {
		return nil, err
	}
	if _, err := db.writer.ExecContext(ctx, "PRAGMA secure_delete=on"); err != nil { // see Scrub
		return nil, errors.Join(err, db.close())
	}
	d := &Documents{check: check, spaces: names{}, members: names{}}
	d.db, d.Failing = db, "documents failed and must be opened again"
	return d, nil
}

// Get reads one document; see storage.Documents.
func (d *Documents) Get(ctx context.Context, tenant, index, id string) (storage.Document, error) {
	if err := d.Failure(); err != nil {
		return storage.Document{}, err
	}
	doc := storage.Document{ID: id}
	var body []byte
	err := d.db.readers.QueryRowContext(ctx,
		"SELECT position, body FROM documents WHERE space = (SELECT number FROM spaces WHERE name = ?) AND id = ?",
		spaceName(tenant, index), id).Scan(&doc.Position, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return storage.Document{}, storage.ErrNotFound
	}
	if err != nil {
		return storage.Document{}, d.closedOr(fmt.Errorf("get document: %w", err))
	}
	doc.Body = body
	return doc, nil
}

// Put writes a document fenced by its position; see storage.Documents.
func (d *Documents) Put(ctx context.Context, tenant, index string, doc storage.Document) error {
	if err := storage.MayChange(index); err != nil {
		return err
	}
	_, err := d.ask(ctx, tenant, index, storage.PutFence, doc)
	return err
}

// Swap writes a document over an expected version; see storage.Documents.
func (d *Documents) Swap(ctx context.Context, tenant, index string, expected int64, doc storage.Document) error {
	if err := storage.MayChange(index); err != nil {
		return err
	}
	_, err := d.ask(ctx, tenant, index, storage.SwapFence(expected), doc)
	return err
}

// Create writes documents that do not exist; see storage.Documents.
func (d *Documents) Create(ctx context.Context, tenant, index string, docs ...storage.Document) (int, error) {
	if len(docs) == 0 {
		return 0, nil
	}
	return d.ask(ctx, tenant, index, storage.CreateFence, docs...)
}

// Delete removes a document; see storage.Documents.
func (d *Documents) Delete(ctx context.Context, tenant, index, id string) error {
	_, err := d.submit(ctx, &change{space: spaceName(tenant, index), remove: []removal{{id: id}}})
	return err
}

// Purge removes what a query selects, a page at a time; see storage.Documents.
func (d *Documents) Purge(ctx context.Context, tenant, index string, q storage.Query) (int, error) {
	if q.Vector != nil {
		return 0, errors.New("purge: a vector selects no documents")
	}
	total := 0
	for q.Limit = purgeBatch; ; {
		page, err := d.Search(ctx, tenant, index, q)
		if err != nil {
			return total, err
		}
		c := &change{space: spaceName(tenant, index)}
		for _, doc := range page.Documents {
			c.remove = append(c.remove, removal{doc.ID, &doc.Position})
		}
		n, err := d.submit(ctx, c)
		if total += n; err != nil || page.Cursor == "" {
			return total, err
		}
		q.After = page.Cursor
	}
}

// Project writes what follows from the journal, in one transaction; see
// storage.Documents.
func (d *Documents) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	if len(p.Put) > 0 {
		if err := storage.MayChange(index); err != nil {
			return err
		}
	}
	c := &change{space: spaceName(tenant, index)}
	if err := errors.Join(d.add(c, tenant, index, storage.NewerFence, p.Put), d.add(c, tenant, index, storage.CreateFence, p.Created)); err != nil {
		return err
	}
	if len(c.docs) == 0 {
		return nil
	}
	_, err := d.submit(ctx, c)
	return err
}

// ask checks documents and has them written.
func (d *Documents) ask(ctx context.Context, tenant, index string, f storage.Fence, docs ...storage.Document) (int, error) {
	c := &change{space: spaceName(tenant, index)}
	if err := d.add(c, tenant, index, f, docs); err != nil {
		return 0, err
	}
	return d.submit(ctx, c)
}

// add checks documents and puts them into a change.
func (d *Documents) add(c *change, tenant, index string, f storage.Fence, docs []storage.Document) error {
	for _, doc := range docs {
		p, err := d.prepare(tenant, index, doc)
		if err != nil {
			return err
		}
		c.docs = append(c.docs, fencedDocument{p, f})
	}
	return nil
}

func (d *Documents) submit(ctx context.Context, c *change) (int, error) {
	c.Answer = group.NewAnswer()
	if err := d.Do(ctx, c); err != nil {
		return 0, err
	}
	return c.n, nil
}

// spaceName separates tenant and index whatever they contain.
func spaceName(tenant, index string) string {
	return fmt.Sprintf("%d:%s/%s", len(tenant), tenant, index)
}

// Dimension is how many numbers each stored vector has; 0: there are no vectors.
// All have one size, since the store checks each write.
func (d *Documents) Dimension(ctx context.Context) (int, error) {
	var size int
	err := d.db.readers.QueryRowContext(ctx, "SELECT length(value) FROM vectors LIMIT 1").Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("dimension: %w", err)
	}
	return size / 4, nil
}
