package sqlite

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
)

// encryptedSchema: a document's box has id, expiry and body, under a key that salt and its owner's
// key give.
var encryptedSchema = []string{`
	CREATE TABLE salt(value BLOB NOT NULL) STRICT;
	CREATE TABLE spaces(number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
	CREATE TABLE owners(number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL) STRICT;
	CREATE TABLE documents(
		row INTEGER PRIMARY KEY, space INTEGER NOT NULL, owner INTEGER NOT NULL, position INTEGER NOT NULL,
		version INTEGER NOT NULL, box BLOB NOT NULL) STRICT`}

// encryption is what a copy needs to encrypt documents or to decrypt them.
type encryption struct {
	keys   *UserKeys
	salt   []byte
	owners map[owner]ownerKey
	after  int64                    // of decryption: the row that was read last
	lost   map[owner]*LostDocuments // of decryption
}

type owner struct{ tenant, user string }

type ownerKey struct {
	number int64
	key    codec.Key
}

// LostDocuments are the documents of a user that cannot be decrypted, since the user's key was
// destroyed. User is empty for a tenant's own.
type LostDocuments struct {
	Tenant    string   `json:"tenant"`
	User      string   `json:"user"`
	Documents int64    `json:"documents"`
	Indices   []string `json:"indices"`
}

// ErrNoUserKey reports that a key of a user is not where it should be, and was not destroyed.
var ErrNoUserKey = errors.New("the key of a user's documents is missing")

// EncryptDocuments is CopyDocuments for a backup: in the copy each document is encrypted under the
// key of its user (storage.OwnerOf), which keys makes where there is none. Finish makes these
// durable. One document at a time is in memory.
func EncryptDocuments(ctx context.Context, from, to string, keys *UserKeys) (*Copy, error) {
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // crypto/rand.Read never fails
	c, err := newCopy(ctx, from, to, len(documentSchema), encryptedSchema, &Copy{
		step: (*Copy).documents, rows: (*Copy).encryptRows, archive: true,
		encryption: &encryption{keys: keys, salt: salt, owners: map[owner]ownerKey{}},
		last: `DELETE FROM documents WHERE row NOT IN (SELECT row FROM source.documents);
			DELETE FROM owners WHERE number NOT IN (SELECT owner FROM documents);
			INSERT OR REPLACE INTO spaces SELECT * FROM source.spaces`,
		next: newestDocument,
	})
	if err != nil {
		return nil, err
	}
	if _, err := c.conn.ExecContext(ctx, "INSERT INTO salt(value) VALUES (?)", salt); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// encryptRows copies some rows of the table differ.
func (c *Copy) encryptRows(ctx context.Context, some string) error {
	rows, err := collect(ctx, c.conn, func(r *sql.Rows) (row int64, err error) { return row, r.Scan(&row) },
		"SELECT row FROM differ WHERE rowid IN ("+some+")")
	if err != nil {
		return err
	}
	return c.transact(ctx, func() error {
		for _, row := range rows {
			if err := c.encryptRow(ctx, row); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *Copy) encryptRow(ctx context.Context, row int64) error {
	var space, position, version int64
	var id, name string
	var ttl sql.NullInt64
	var body []byte
	err := c.conn.QueryRowContext(ctx, `SELECT d.space, s.name, d.id, d.position, d.ttl, d.body, d.version
		FROM source.documents d JOIN source.spaces s ON s.number = d.space WHERE d.row = ?`, row).Scan(&space, &name, &id, &position, &ttl, &body, &version)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	tenant, index, ok := placeOf(name)
	if !ok {
		return fmt.Errorf("space %q", name)
	}
	user, err := storage.OwnerOf(index, body)
	if err != nil {
		return fmt.Errorf("%s of %s: document %s: %w", index, tenant, id, err)
	}
	o, err := c.owner(ctx, owner{tenant, user})
	if err != nil {
		return err
	}
	plain := codec.AppendBytes(make([]byte, 0, len(id)+len(body)+32), []byte(id))
	expires := ""
	if ttl.Valid {
		expires = strconv.FormatInt(ttl.Int64, 10)
	}
	plain = codec.AppendBytes(codec.AppendBytes(plain, []byte(expires)), body)
	_, err = c.conn.ExecContext(ctx, "INSERT OR REPLACE INTO main.documents(row, space, owner, position, version, box) VALUES (?, ?, ?, ?, ?, ?)",
		row, space, o.number, position, version, codec.Encrypt(o.key, plain, boxCovers(name, row, position)))
	return err
}

// boxCovers is what a box is bound to beside its key.
func boxCovers(space string, row, position int64) []byte {
	return fmt.Appendf(nil, "%d %d %s", row, position, space)
}

// owner returns the number of an owner and the key of its boxes.
func (c *Copy) owner(ctx context.Context, of owner) (ownerKey, error) {
	x := c.encryption
	if o, known := x.owners[of]; known {
		return o, nil
	}
	key, err := x.keys.add(of.tenant, of.user)
	if err != nil {
		return ownerKey{}, fmt.Errorf("keys of users: %w", err)
	}
	o := ownerKey{number: int64(len(x.owners) + 1)}
	if o.key, err = x.boxKey(key); err != nil {
		return o, err
	}
	if _, err := c.conn.ExecContext(ctx, "INSERT INTO owners(number, tenant, user) VALUES (?, ?, ?)", o.number, of.tenant, of.user); err != nil {
		return o, err
	}
	x.owners[of] = o
	return o, nil
}

// boxKey is the key of a user's boxes in one copy: no key encrypts more than a copy has.
func (x *encryption) boxKey(of codec.Key) (codec.Key, error) {
	raw, err := hkdf.Key(sha256.New, of[:], x.salt, "writ documents of a backup v1\n", codec.KeySize)
	if err != nil {
		return codec.Key{}, err
	}
	return codec.Key(raw), nil
}

// DecryptDocuments makes a file of documents, without search entries, of what EncryptDocuments made.
// It leaves out the documents whose user's key was destroyed and reports them. ErrNoUserKey: the
// keys have never had that of a user.
func DecryptDocuments(ctx context.Context, from, to string, keys *UserKeys) (lost []LostDocuments, err error) {
	x := &encryption{keys: keys, lost: map[owner]*LostDocuments{}}
	c, err := newCopy(ctx, from, to, len(encryptedSchema), documentSchema, &Copy{
		step: (*Copy).decrypt, encryption: x, last: "INSERT INTO spaces SELECT * FROM source.spaces", next: "SELECT 0",
	})
	if err != nil {
		return nil, err
	}
	err = c.conn.QueryRowContext(ctx, "SELECT value FROM source.salt").Scan(&x.salt)
	if err == nil {
		_, err = c.all(ctx)
	}
	if err == nil {
		_, err = c.Begin(ctx)
	}
	if err == nil {
		err = c.Finish(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, l := range x.lost {
		slices.Sort(l.Indices)
		lost = append(lost, *l)
	}
	slices.SortFunc(lost, func(a, b LostDocuments) int {
		return slices.Compare([]string{a.Tenant, a.User}, []string{b.Tenant, b.User})
	})
	f, err := os.Open(to) //nolint:gosec // G304: the caller names it
	if err != nil {
		return nil, err
	}
	return lost, errors.Join(f.Sync(), f.Close())
}

// decrypt copies the next documents.
func (c *Copy) decrypt(ctx context.Context) (int64, error) {
	rows, err := collect(ctx, c.conn, func(r *sql.Rows) (row int64, err error) { return row, r.Scan(&row) },
		fmt.Sprintf("SELECT row FROM source.documents WHERE row > ? ORDER BY row LIMIT %d", copyRows), c.encryption.after)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	err = c.transact(ctx, func() error {
		for _, row := range rows {
			if err := c.decryptRow(ctx, row); err != nil {
				return err
			}
		}
		return nil
	})
	c.encryption.after = rows[len(rows)-1]
	return int64(len(rows)), err
}

func (c *Copy) decryptRow(ctx context.Context, row int64) error {
	x := c.encryption
	var of owner
	var name string
	var space, position, version int64
	var box []byte
	err := c.conn.QueryRowContext(ctx, `SELECT o.tenant, o.user, s.name, d.space, d.position, d.version, d.box FROM source.documents d
		JOIN source.owners o ON o.number = d.owner JOIN source.spaces s ON s.number = d.space WHERE d.row = ?`, row).
		Scan(&of.tenant, &of.user, &name, &space, &position, &version, &box)
	if err != nil {
		return err
	}
	plain, err := x.open(of, box, boxCovers(name, row, position))
	if errors.Is(err, codec.ErrErased) {
		x.lose(of, name)
		return nil
	}
	if err != nil {
		return err
	}
	in := codec.Reader{Rest: plain}
	id, expires, body := in.Bytes(), in.Bytes(), in.Bytes()
	var ttl sql.NullInt64
	if len(expires) > 0 {
		ttl.Int64, err = strconv.ParseInt(string(expires), 10, 64)
		ttl.Valid = true
	}
	if in.Bad || len(in.Rest) > 0 || err != nil {
		return fmt.Errorf("document %d is not what was written", row)
	}
	_, err = c.conn.ExecContext(ctx, "INSERT INTO main.documents(row, space, id, position, ttl, body, version) VALUES (?, ?, ?, ?, ?, ?, ?)",
		row, space, string(id), position, ttl, string(body), version)
	return err
}

// open decrypts a box. codec.ErrErased: the key that it had was destroyed.
func (x *encryption) open(of owner, box, covered []byte) ([]byte, error) {
	key, err := x.keys.of(of.tenant, of.user)
	switch {
	case errors.Is(err, codec.ErrErased):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: user %q of tenant %q", ErrNoUserKey, of.user, of.tenant)
	}
	if key, err = x.boxKey(key); err != nil {
		return nil, err
	}
	plain, err := codec.Decrypt(key, box, covered)
	switch {
	case err == nil:
		return plain, nil
	case x.keys.erased(of.tenant, of.user): // the key is a later one
		return nil, codec.ErrErased
	default:
		return nil, fmt.Errorf("%w: that of user %q of tenant %q is another one", ErrNoUserKey, of.user, of.tenant)
	}
}

// lose counts a document that cannot be decrypted.
func (x *encryption) lose(of owner, space string) {
	l := x.lost[of]
	if l == nil {
		l = &LostDocuments{Tenant: of.tenant, User: of.user}
		x.lost[of] = l
	}
	l.Documents++
	if _, index, ok := placeOf(space); ok && !slices.Contains(l.Indices, index) {
		l.Indices = append(l.Indices, index)
	}
}
