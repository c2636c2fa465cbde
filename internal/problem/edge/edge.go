// Package edge is what every HTTP listener of ours puts between the network and
// its handlers: limits on time, size and number, and what no handler needs to see.
package edge

import (
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// Limits of a listener.
type Limits struct {
	Header      time.Duration // to send the header
	Body        time.Duration // to send header and body
	Idle        time.Duration // between two requests of a connection
	Connections int           // at once; further ones wait to be accepted
}

// Default limits: whoever is slow loses the connection, not the service.
var Default = Limits{Header: 10 * time.Second, Body: 30 * time.Second, Idle: 2 * time.Minute, Connections: 2048}

// Sizes in bytes. A header above maxHeader never reaches a handler and is told so
// in plain text by net/http; from refuseHeader on it gets a problem document.
const (
	maxHeader    = 64 << 10
	refuseHeader = 32 << 10
)

// Server is an http.Server with the limits. There is none on writing: a stream
// lasts as long as its turn, and bounds each write itself.
func (l Limits) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: l.Header, ReadTimeout: l.Body, IdleTimeout: l.Idle, MaxHeaderBytes: maxHeader,
	}
}

// Listener bounds the connections of a listener.
func (l Limits) Listener(of net.Listener) net.Listener {
	return netutil.LimitListener(of, l.Connections)
}
