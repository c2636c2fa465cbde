package mcp

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"
)

// Defaults of [Options].
const (
	DefaultMaxBytes     = 32 << 20         // a response above that is ErrTooLarge
	DefaultTimeout      = 30 * time.Second // one call, once
	DefaultStartTimeout = time.Minute      // of a process: npx may have to download it first
	DefaultDialTimeout  = 10 * time.Second // of a server that is there already
	DefaultBackoff      = 200 * time.Millisecond
)

// maxAttempts bounds how often one request is sent.
const maxAttempts = 3

// Options of a client; the zero value works.
type Options struct {
	// MaxBytes bounds one response, as JSON: an HTTP body after
	// decompression, or a line of a child's output.
	MaxBytes int64
	// Timeout bounds one attempt of a call; the caller's context bounds all.
	Timeout time.Duration
	// StartTimeout bounds connecting: start of the process and handshake. Zero:
	// DefaultStartTimeout of a process, DefaultDialTimeout of a URL.
	StartTimeout time.Duration
	// Backoff is the wait before the second attempt; four times that before
	// the third. Negative: none.
	Backoff time.Duration

	// Header goes with every HTTP request: credentials of this server.
	Header http.Header
	// RoundTripper carries HTTP requests; nil is a transport of its own that
	// uses no proxy. Serving processes pass one that checks addresses.
	RoundTripper http.RoundTripper

	// Isolation starts the process of a source that is a command; nil: it is a
	// plain child, which sees all that we see.
	Isolation *Isolation

	// Log receives a child's standard error and connection events; nil: none.
	Log *slog.Logger
}

func (o Options) withDefaults(src Source) Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.StartTimeout <= 0 && src.URL == "" {
		o.StartTimeout = DefaultStartTimeout
	} else if o.StartTimeout <= 0 {
		o.StartTimeout = DefaultDialTimeout
	}
	o.Backoff = cmp.Or(o.Backoff, DefaultBackoff)
	if o.RoundTripper == nil {
		o.RoundTripper = &http.Transport{ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}
