package sqlite

import (
	"database/sql/driver"
	"time"

	"modernc.org/sqlite"
	_ "modernc.org/sqlite/vec" // vec_distance_cosine

	"aob.dev/writ/storage"
)

// The driver has one registry of SQL functions for the process.
func init() {
	sqlite.MustRegisterDeterministicScalarFunction("writ_time", 1, timeTerm)
}

// timeTerm is writ_time(text): the term of a time, NULL if the text is not a time.
func timeTerm(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	text, _ := args[0].(string)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // NULL
	}
	return storage.FormatTime(t), nil
}
