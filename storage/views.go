package storage

import "context"

// View is documents under a name that a statement knows them by, with the members of
// their index as columns.
type View struct {
	Name, Index string
	Documents   []Document
}

// StatementError is a statement that cannot be carried out as it is written.
type StatementError struct{ Reason string }

func (e *StatementError) Error() string { return "storage: statement: " + e.Reason }

// Querier is implemented by stores that can carry out a statement of SQL over views of
// documents. The statement sees nothing else. more: there are rows beyond the bound.
type Querier interface {
	Rows(ctx context.Context, views []View, statement string) (rows []map[string]any, more bool, err error)
}
