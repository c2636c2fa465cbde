package mcp

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/egress"
)

// Defaults of [Options].
const (
	DefaultMaxBytes     = 32 << 20         // a response above that is ErrTooLarge
	DefaultTimeout      = time.Minute      // of a call
	DefaultStartTimeout = time.Minute      // of a process: npx may have to download it first
	DefaultDialTimeout  = 10 * time.Second // of a server that is there already
	DefaultBackoff      = 200 * time.Millisecond
	DefaultRetries      = 3 // after the first attempt
)

// MaxTimeout is the longest Timeout, and the longest call.
const MaxTimeout = catalog.MaxCall

// maxRetryAfter is how long a server may ask to wait before the next attempt. A longer
// wait is left to the caller.
const maxRetryAfter = 10 * time.Second

// Options of a client; the zero value works.
type Options struct {
	// MaxBytes bounds one response, as JSON: an HTTP body after
	// decompression, or a line of a child's output.
	MaxBytes int64
	// Timeout is how long an attempt of a call may go on without an answer or progress; the caller's
	// context bounds all. A call that was late is repeated only with CallMeta.RetryLate. The source may have another one for
	// its tool. Zero: that of the source, or else DefaultTimeout.
	Timeout time.Duration
	// StartTimeout bounds connecting: start of the process and handshake. Zero:
	// DefaultStartTimeout of a process, DefaultDialTimeout of a URL.
	StartTimeout time.Duration
	// Retries are further attempts of a request that was certainly not accepted or may be repeated.
	// Zero: DefaultRetries; negative: none.
	Retries int
	// Backoff is the wait before the second attempt; it doubles. A longer wait requested by the
	// server takes precedence. Negative: none.
	Backoff time.Duration

	// Header goes with every HTTP request: credentials of this server. Nil: that of the
	// source.
	Header http.Header
	// RoundTripper carries HTTP requests; nil: one for a server that the operator configured. A
	// server that somebody else named gets egress.Transport, limited to what the operator allows.
	RoundTripper http.RoundTripper

	// Hide removes secrets that are not of the source from texts of the server; nil: there are none.
	Hide func(string) string

	// Isolation starts the process of a source that is a command; nil: it is a plain child, which
	// sees everything that we see.
	Isolation *Isolation

	// Log receives a child's standard error and connection events; nil: none.
	Log *slog.Logger
}

func (o Options) withDefaults(src Source) Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Timeout <= 0 {
		o.Timeout = cmp.Or(src.Timeout, DefaultTimeout)
	}
	if o.StartTimeout <= 0 && src.URL == "" {
		o.StartTimeout = DefaultStartTimeout
	} else if o.StartTimeout <= 0 {
		o.StartTimeout = DefaultDialTimeout
	}
	o.Backoff, o.Retries = cmp.Or(o.Backoff, DefaultBackoff), cmp.Or(o.Retries, DefaultRetries)
	if o.RoundTripper == nil {
		o.RoundTripper = egress.Transport(src.URL)
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}
