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
	sqlite.MustRegisterDeterministicScalarFunction("writ_floor", 2, timeFloor)
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

// timeFloor is writ_floor(text, interval): when the interval of a time began.
func timeFloor(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	text, _ := args[0].(string)
	every, _ := args[1].(string)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // NULL
	}
	return storage.FormatTime(floor(t.UTC(), every)), nil
}

func floor(t time.Time, every string) time.Time {
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	switch every {
	case "minute":
		return t.Truncate(time.Minute)
	case "hour":
		return t.Truncate(time.Hour)
	case "week":
		return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	case "month":
		return day.AddDate(0, 0, 1-day.Day())
	default:
		return day
	}
}
