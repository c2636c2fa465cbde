package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/group"
)

// change is one call that waits for the writer: documents to write or to remove.
type change struct {
	space   string
	docs    []fencedDocument
	remove  []removal
	n       int                                      // how many were written or removed
	refused error                                    // by a fence
	step    func(context.Context) (n int, err error) // of a scrub, instead of all these
	group.Answer
}

// fencedDocument is a document and what decides whether it is written.
type fencedDocument struct {
	preparedDocument
	fence storage.Fence
}

// removal of a document, only if it is at a position where one is given.
type removal struct {
	id       string
	position *int64
}

// write makes a group of changes durable in one transaction and answers. Fences
// are called inside it, so a change sees the earlier ones of its group. A change
// that its fence refuses has written nothing; an error of the database fails the
// whole group.
func (d *Documents) write(ctx context.Context, batch []*change) {
	err := d.Failure()
	if err == nil {
		batch = slices.DeleteFunc(batch, func(c *change) bool { return c.step != nil && d.takeStep(ctx, c) })
		err = d.Failure()
	}
	if err == nil && len(batch) > 0 {
		err = d.transact(ctx, batch)
	}
	if err != nil {
		group.AnswerAll(batch, err)
		return
	}
	for _, c := range batch {
		c.Answer <- c.refused
	}
	d.ckpt.between(ctx, d.db.writer)
}

func (d *Documents) transact(ctx context.Context, batch []*change) error {
	err := d.db.transact(ctx, func() error {
		for _, c := range batch {
			if err := d.apply(ctx, c); err != nil {
				return err
			}
		}
		failpoint.Hit(failpoint.DocumentWritten)
		return nil
	})
	if err != nil {
		d.spaces, d.members = names{}, names{} // may hold numbers that were rolled back
		return d.writeFailed(err)
	}
	failpoint.Hit(failpoint.DocumentDurable)
	return nil
}

// apply writes one change. Its error is the database's; a refusal is c.refused.
// A fence that refuses guards a change of one document, so a refused change has
// written nothing.
func (d *Documents) apply(ctx context.Context, c *change) error {
	space, err := d.spaces.number(ctx, d.db, "spaces", c.space)
	if err != nil {
		return err
	}
	for _, r := range c.remove {
		old, err := d.stored(ctx, space, r.id)
		if err != nil {
			return err
		}
		if old == nil || r.position != nil && *r.position != old.position {
			continue
		}
		if err := d.erase(ctx, space, c.index(), old); err != nil {
			return err
		}
		c.n++
	}
	for _, doc := range c.docs {
		old, err := d.stored(ctx, space, doc.ID)
		if err != nil {
			return err
		}
		var position *int64
		if old != nil {
			position = &old.position
		}
		write, refused := doc.fence(position, doc.Position)
		if refused != nil {
			c.refused = refused
			return nil //nolint:nilerr // a refusal is the answer to one request, not a failed transaction
		}
		if !write {
			continue
		}
		if err := d.replace(ctx, space, c.index(), old, doc.preparedDocument); err != nil {
			return err
		}
		c.n++
	}
	return nil
}

// row is a stored document.
type row struct {
	number   int64
	position int64
	body     []byte
}

func (d *Documents) stored(ctx context.Context, space int64, id string) (*row, error) {
	var r row
	s, err := d.db.statement(ctx, "SELECT row, position, body FROM documents WHERE space = ? AND id = ?")
	if err == nil {
		err = s.QueryRowContext(ctx, space, id).Scan(&r.number, &r.position, &r.body)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // no row is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("find document: %w", err)
	}
	return &r, nil
}

// replace writes a document and brings its entries in step with it.
func (d *Documents) replace(ctx context.Context, space int64, index string, old *row, doc preparedDocument) error {
	if old == nil {
		result, err := d.db.exec(ctx, "INSERT INTO documents(space, id, position, ttl, body, version) VALUES (?, ?, ?, ?, ?, random())",
			space, doc.ID, doc.Position, doc.ttl, string(doc.Body))
		if err != nil {
			return fmt.Errorf("insert document: %w", err)
		}
		number, err := result.LastInsertId()
		if err != nil {
			return fmt.Errorf("insert document: %w", err)
		}
		return d.index(ctx, space, number, entries{}, doc.entries)
	}
	if _, err := d.db.exec(ctx, "UPDATE documents SET position = ?, ttl = ?, body = ?, version = random() WHERE row = ?", doc.Position, doc.ttl, string(doc.Body), old.number); err != nil {
		return fmt.Errorf("update document: %w", err)
	}
	before, err := d.entriesOf(index, old.body)
	if err != nil {
		return err
	}
	return d.index(ctx, space, old.number, before, doc.entries)
}

func (d *Documents) erase(ctx context.Context, space int64, index string, old *row) error {
	before, err := d.entriesOf(index, old.body)
	if err != nil {
		return err
	}
	if err := d.index(ctx, space, old.number, before, entries{}); err != nil {
		return err
	}
	return d.exec(ctx, "DELETE FROM documents WHERE row = ?", old.number)
}

// termsTogether is how many terms one statement adds.
const termsTogether = 16

// addTerms are the statements that add so many terms to a row, by space, row, and each member and value.
// A failure rolls the transaction back, as transact would: to roll back the statement alone, SQLite
// would copy each page that it changes.
var addTerms = sync.OnceValue(func() (all [termsTogether + 1]string) {
	var values []string
	for n := 1; n <= termsTogether; n++ {
		values = append(values, fmt.Sprintf("(?1, ?%d, ?%d, ?2)", 2*n+1, 2*n+2))
		all[n] = "INSERT OR ROLLBACK INTO terms(space, member, value, row) VALUES " + strings.Join(values, ", ")
	}
	return all
})

// Statements for one entry of a row, by space, member, value and row.
const (
	dropTerm   = "DELETE FROM terms WHERE space = ? AND member = ? AND value = ? AND row = ?"
	addVector  = "INSERT INTO vectors(space, member, value, row) VALUES (?, ?, ?, ?)"
	dropVector = "DELETE FROM vectors WHERE space = ? AND member = ? AND ? IS NULL AND row = ?"
)

// index replaces the entries of a row.
func (d *Documents) index(ctx context.Context, space, number int64, before, after entries) error {
	if err := d.eachTerm(ctx, dropTerm, space, number, difference(before.terms, after.terms)); err != nil {
		return err
	}
	for some := range slices.Chunk(difference(after.terms, before.terms), termsTogether) {
		args := []any{space, number}
		for _, t := range some {
			member, err := d.members.number(ctx, d.db, "members", t.member)
			if err != nil {
				return err
			}
			args = append(args, member, t.value)
		}
		if err := d.exec(ctx, addTerms()[len(some)], args...); err != nil {
			return err
		}
	}
	if before.words != after.words {
		if err := d.replaceText(ctx, textRow(space, number), before.words, after.words); err != nil {
			return err
		}
	}
	for _, v := range before.vectors {
		if err := d.eachTerm(ctx, dropVector, space, number, []term{{member: v.member}}); err != nil {
			return err
		}
	}
	for _, v := range after.vectors {
		if err := d.eachTerm(ctx, addVector, space, number, []term{{v.member, v.value}}); err != nil {
			return err
		}
	}
	return nil
}

func (d *Documents) replaceText(ctx context.Context, row int64, before, after string) error {
	if before != "" {
		if err := d.exec(ctx, "DELETE FROM text WHERE rowid = ?", row); err != nil {
			return err
		}
	}
	if after == "" {
		return nil
	}
	return d.exec(ctx, "INSERT INTO text(rowid, words) VALUES (?, ?)", row, after)
}

func (d *Documents) eachTerm(ctx context.Context, statement string, space, number int64, list []term) error {
	for _, t := range list {
		member, err := d.members.number(ctx, d.db, "members", t.member)
		if err != nil {
			return err
		}
		if err := d.exec(ctx, statement, space, member, t.value, number); err != nil {
			return err
		}
	}
	return nil
}

func (d *Documents) exec(ctx context.Context, statement string, args ...any) error {
	if _, err := d.db.exec(ctx, statement, args...); err != nil {
		return fmt.Errorf("index document: %w", err)
	}
	return nil
}

// difference is what a has and b has not.
func difference(a, b []term) []term {
	if len(b) == 0 {
		return a
	}
	has := make(map[term]bool, len(b))
	for _, t := range b {
		has[t] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(t term) bool { return has[t] })
}

// index of a change: every space is one of an index.
func (c *change) index() string {
	_, index, _ := placeOf(c.space)
	return index
}

// rowBits are those of a document's row in a row of text; above them is the space.
const rowBits = 40

// textRow is the row of a document's words. The rows of a space are together, so
// that a search is one of a range of them: a word that says the space would be in
// all documents of a tenant, and the weights of a search count where a word is.
func textRow(space, row int64) int64 { return space<<rowBits | row }

// nameLimit bounds the cache of names; what falls out is read again.
const nameLimit = 1 << 16

// names are numbers of names, given out once and for good.
type names map[string]int64

// number finds the number of a name in a table, or gives it one.
func (n names) number(ctx context.Context, db *database, table, name string) (number int64, err error) {
	if number, ok := n[name]; ok {
		return number, nil
	}
	s, err := db.statement(ctx, "INSERT INTO "+table+"(name) VALUES (?) ON CONFLICT(name) DO UPDATE SET name = name RETURNING number")
	if err == nil {
		err = s.QueryRowContext(ctx, name).Scan(&number)
	}
	if err != nil {
		return 0, fmt.Errorf("number of a name: %w", err)
	}
	if len(n) >= nameLimit {
		clear(n)
	}
	n[name] = number
	return number, nil
}
