package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
)

// change is one call that waits for the writer: documents to write or to remove.
type change struct {
	space   string
	docs    []fenced
	remove  []removal
	verdict written
	answer  chan written // buffered: the writer never waits for a caller that went away
}

// fenced is a document and what decides whether it is written.
type fenced struct {
	prepared
	fence storage.Fence
}

// removal of a document, only if it is at a position where one is given.
type removal struct {
	id       string
	position *int64
}

type written struct {
	n   int
	err error
}

// write makes a group of changes durable in one transaction and answers. Fences
// are asked inside it, so a change sees the earlier ones of its group. A change
// that its fence refuses has written nothing; an error of the database fails the
// whole group.
func (d *Documents) write(ctx context.Context, batch []*change) {
	err := d.broken.get()
	if err == nil {
		err = d.transact(ctx, batch)
	}
	if err != nil {
		for _, c := range batch {
			c.answer <- written{err: err}
		}
		return
	}
	for _, c := range batch {
		c.answer <- c.verdict
	}
	d.ckpt.between(ctx, d.db.writer)
}

func (d *Documents) transact(ctx context.Context, batch []*change) error {
	err := func() error {
		if _, err := d.statements.begin.ExecContext(ctx); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		for _, c := range batch {
			if err := d.apply(ctx, c); err != nil {
				return err
			}
		}
		failpoint.Hit(failpoint.DocumentWritten)
		if _, err := d.statements.commit.ExecContext(ctx); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		failpoint.Hit(failpoint.DocumentDurable)
		return nil
	}()
	if err == nil {
		return nil
	}
	// As in the journal: if SQLite has rolled back already this fails, and a
	// transaction left open makes the next BEGIN fail.
	_, _ = d.statements.rollback.ExecContext(ctx)
	d.spaces, d.members = names{}, names{} // may hold numbers that were rolled back
	if isFull(err) {
		return errors.Join(storage.ErrFull, err)
	}
	d.broken.set(fmt.Errorf("documents failed and must be opened again: %w", err))
	return d.broken.get()
}

// apply writes one change. Its error is the database's; a refusal is the verdict.
// A fence that refuses guards a change of one document, so a refused change has
// written nothing.
func (d *Documents) apply(ctx context.Context, c *change) error {
	space, err := d.spaces.number(ctx, d.statements.space, c.space)
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
		c.verdict.n++
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
			c.verdict.err = refused
			return nil //nolint:nilerr // a refusal is the verdict of one request, not a failed transaction
		}
		if !write {
			continue
		}
		if err := d.replace(ctx, space, c.index(), old, doc.prepared); err != nil {
			return err
		}
		c.verdict.n++
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
	err := d.statements.find.QueryRowContext(ctx, space, id).Scan(&r.number, &r.position, &r.body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // no row is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("find document: %w", err)
	}
	return &r, nil
}

// replace writes a document and brings its entries in step with it.
func (d *Documents) replace(ctx context.Context, space int64, index string, old *row, doc prepared) error {
	if old == nil {
		result, err := d.statements.insert.ExecContext(ctx, space, doc.ID, doc.Position, doc.ttl, string(doc.Body))
		if err != nil {
			return fmt.Errorf("insert document: %w", err)
		}
		number, err := result.LastInsertId()
		if err != nil {
			return fmt.Errorf("insert document: %w", err)
		}
		return d.index(ctx, space, number, entries{}, doc.entries)
	}
	if _, err := d.statements.update.ExecContext(ctx, doc.Position, doc.ttl, string(doc.Body), old.number); err != nil {
		return fmt.Errorf("update document: %w", err)
	}
	before, err := entriesOfBody(index, old.body)
	if err != nil {
		return err
	}
	return d.index(ctx, space, old.number, before, doc.entries)
}

func (d *Documents) erase(ctx context.Context, space int64, index string, old *row) error {
	before, err := entriesOfBody(index, old.body)
	if err != nil {
		return err
	}
	if err := d.index(ctx, space, old.number, before, entries{}); err != nil {
		return err
	}
	return d.exec(ctx, d.statements.remove, old.number)
}

// index replaces the entries of a row.
func (d *Documents) index(ctx context.Context, space, number int64, before, after entries) error {
	if err := d.eachTerm(ctx, d.statements.dropTerm, space, number, difference(before.terms, after.terms)); err != nil {
		return err
	}
	if err := d.eachTerm(ctx, d.statements.addTerm, space, number, difference(after.terms, before.terms)); err != nil {
		return err
	}
	if before.words != after.words {
		if err := d.replaceText(ctx, textRow(space, number), before.words, after.words); err != nil {
			return err
		}
	}
	for _, v := range before.vectors {
		if err := d.eachTerm(ctx, d.statements.dropVector, space, number, []term{{member: v.member}}); err != nil {
			return err
		}
	}
	for _, v := range after.vectors {
		if err := d.eachTerm(ctx, d.statements.addVector, space, number, []term{{v.member, v.value}}); err != nil {
			return err
		}
	}
	return nil
}

func (d *Documents) replaceText(ctx context.Context, row int64, before, after string) error {
	if before != "" {
		if err := d.exec(ctx, d.statements.dropText, row); err != nil {
			return err
		}
	}
	if after == "" {
		return nil
	}
	return d.exec(ctx, d.statements.addText, row, after)
}

func (d *Documents) eachTerm(ctx context.Context, s *sql.Stmt, space, number int64, list []term) error {
	for _, t := range list {
		member, err := d.members.number(ctx, d.statements.member, t.member)
		if err != nil {
			return err
		}
		if err := d.exec(ctx, s, space, member, t.value, number); err != nil {
			return err
		}
	}
	return nil
}

func (d *Documents) exec(ctx context.Context, s *sql.Stmt, args ...any) error {
	if _, err := s.ExecContext(ctx, args...); err != nil {
		return fmt.Errorf("index document: %w", err)
	}
	return nil
}

// difference is what a has and b has not.
func difference(a, b []term) []term {
	has := make(map[term]bool, len(b))
	for _, t := range b {
		has[t] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(t term) bool { return has[t] })
}

// index of a change: every space is one of an index.
func (c *change) index() string {
	index, _ := indexOf(c.space)
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

// number finds or gives the number of a name.
func (n *names) number(ctx context.Context, s *sql.Stmt, name string) (int64, error) {
	if number, ok := (*n)[name]; ok {
		return number, nil
	}
	var number int64
	if err := s.QueryRowContext(ctx, name).Scan(&number); err != nil {
		return 0, fmt.Errorf("number of a name: %w", err)
	}
	if *n == nil {
		*n = make(names)
	}
	if len(*n) >= nameLimit {
		clear(*n)
	}
	(*n)[name] = number
	return number, nil
}
