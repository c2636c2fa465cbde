package cli

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"aob.dev/writ/internal/logging"
)

// logger writes messages to standard error: text for a terminal, JSON elsewhere.
func logger(std IO, level string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	return logging.New(std.Err, l, terminal(std.Err))
}

// lastLines is how long a process that ends waits for whoever reads its log.
const lastLines = time.Second

// served is standard error of a process that serves: it never waits for its reader, and the process
// outlives the reader. done writes the rest.
func served(std IO, level string) (_ IO, dropped func() int64, done func()) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a write then fails, and does not end the process
	told := logger(std, level)
	a := logging.NewAsyncWriter(std.Err, func(n int64) {
		told.Warn("lines of the log were dropped, since nobody read it in time", slog.Int64("lines", n))
	})
	std.Err = aside{a, terminal(std.Err)}
	slog.SetDefault(logger(std, level)) // of libraries that have no logger of ours
	return std, a.Dropped, func() { a.Close(lastLines) }
}

// aside remembers whether a person looks on.
type aside struct {
	*logging.AsyncWriter
	terminal bool
}
