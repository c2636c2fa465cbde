package sqlite

import (
	"database/sql"
	"fmt"
)

// documentStatements are prepared on the writer's connection.
type documentStatements struct {
	begin, commit, rollback *sql.Stmt
	space, member           *sql.Stmt
	find, insert, update    *sql.Stmt
	remove                  *sql.Stmt
	addTerm, dropTerm       *sql.Stmt
	addText, dropText       *sql.Stmt
	addVector, dropVector   *sql.Stmt
}

// naming gives a name its number, new or old.
const naming = "INSERT INTO %s(name) VALUES (?) ON CONFLICT(name) DO UPDATE SET name = name RETURNING number"

func (s *documentStatements) texts() []text {
	return []text{
		{&s.begin, "BEGIN IMMEDIATE"},
		{&s.commit, "COMMIT"},
		{&s.rollback, "ROLLBACK"},
		{&s.space, fmt.Sprintf(naming, "spaces")},
		{&s.member, fmt.Sprintf(naming, "members")},
		{&s.find, "SELECT row, position, body FROM documents WHERE space = ? AND id = ?"},
		{&s.insert, "INSERT INTO documents(space, id, position, ttl, body) VALUES (?, ?, ?, ?, ?)"},
		{&s.update, "UPDATE documents SET position = ?, ttl = ?, body = ? WHERE row = ?"},
		{&s.remove, "DELETE FROM documents WHERE row = ?"},
		{&s.addTerm, "INSERT INTO terms(space, member, value, row) VALUES (?, ?, ?, ?)"},
		{&s.dropTerm, "DELETE FROM terms WHERE space = ? AND member = ? AND value = ? AND row = ?"},
		{&s.addText, "INSERT INTO text(rowid, words) VALUES (?, ?)"},
		{&s.addVector, "INSERT INTO vectors(space, member, value, row) VALUES (?, ?, ?, ?)"},
		{&s.dropVector, "DELETE FROM vectors WHERE space = ? AND member = ? AND ? IS NULL AND row = ?"},
		{&s.dropText, "DELETE FROM text WHERE rowid = ?"},
	}
}
