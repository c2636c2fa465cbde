package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// AccessLine is a line of the access log: one read of a person. It never has the text of a query.
type AccessLine struct {
	At        time.Time `json:"at"`
	RequestID string    `json:"request_id"` // the trace_id of the answer
	Tenant    string    `json:"tenant"`     // empty: the bearer is nobody
	Key       string    `json:"key"`        // id of the API key; empty: an operator's client
	User      string    `json:"user"`
	Route     string    `json:"route"`
	Subject   string    `json:"subject"` // as in audit.read; empty: a list
	Own       bool      `json:"own"`     // known to be of nobody else
	Status    int       `json:"status"`  // of HTTP
}

// AccessLogDays is how long a day's file of the access log is kept.
const AccessLogDays = 90

// AccessLog says who read what, beside the record: one JSON line for each read, in files of a day,
// <dir>/2026-01-31.jsonl in UTC, with mode 0600. A line is written when the read has been answered,
// and not synced: a crash of the process loses none but that of a read that it was answering, a
// crash of the machine those of its last seconds. Safe for concurrent use; nil writes nothing.
type AccessLog struct {
	dir string
	log *slog.Logger

	mu   sync.Mutex // guards the rest
	day  string
	file *os.File
	bad  bool // the last line was not written
}

// OpenAccessLog opens the access log of a process. The folder is made with the first line.
func OpenAccessLog(dir string, log *slog.Logger) *AccessLog { return &AccessLog{dir: dir, log: log} }

// Write appends a line. An error goes to the process log, once until lines are written again: a
// full disk must not keep people from reading why.
func (a *AccessLog) Write(ctx context.Context, line AccessLine) {
	if a == nil {
		return
	}
	line.At = line.At.UTC()
	raw, _ := json.Marshal(line) // plain data
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.turn(line.At)
	if err == nil {
		_, err = a.file.Write(append(raw, '\n'))
	}
	if err != nil && !a.bad {
		a.log.ErrorContext(ctx, "access log", slog.String("error", err.Error()))
	}
	a.bad = err != nil
}

// turn opens the file of a line's day. The first line of a day removes old files.
func (a *AccessLog) turn(at time.Time) error {
	day := at.Format(time.DateOnly)
	if a.file != nil && a.day == day {
		return nil
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(a.dir, day+accessExt), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // G304: below the data directory
	if err != nil {
		return err
	}
	if a.file != nil {
		err = a.file.Close()
	}
	a.day, a.file = day, f
	return errors.Join(err, removeAccess(a.dir, at.AddDate(0, 0, -AccessLogDays)))
}

// accessExt ends the name of a day's file.
const accessExt = ".jsonl"

// removeAccess removes the files of days before a time.
func removeAccess(dir string, before time.Time) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		day, ours := strings.CutSuffix(f.Name(), accessExt)
		at, bad := time.Parse(time.DateOnly, day)
		if !ours || bad != nil || !at.Before(before.Truncate(24*time.Hour)) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the access log of %s: %w", day, err)
		}
	}
	return nil
}

// Close closes the file. A later line opens it again.
func (a *AccessLog) Close() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	a.file = nil
	return err
}
