// Package edge stands between the network and the handlers of every HTTP listener. It limits
// time, size and number of requests, and refuses requests that no handler needs to see.
package edge

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"mime"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// Limits of a listener.
type Limits struct {
	Header      time.Duration // to send the header
	Body        time.Duration // to send header and body
	Idle        time.Duration // between two requests of a connection
	Write       time.Duration // for a client to receive one write
	Connections int           // at once
	PerAddress  int           // at once from one address (IPv6: one /64)
	Spare       int           // more connections, only for health checks
}

// Default limits: a slow client loses its connection, and the service goes on. A proxy in
// front is one address.
var Default = Limits{Header: 10 * time.Second, Body: 30 * time.Second, Idle: 2 * time.Minute, Write: time.Minute, Connections: 2048, PerAddress: 512, Spare: 32}

// Sizes in bytes. net/http refuses a header above maxHeader in plain text, before any
// handler. A header above refuseHeader gets a problem document.
const (
	maxHeader    = 64 << 10
	refuseHeader = 32 << 10
)

// Server is an http.Server with the limits, to serve a Listener. The length of an answer
// has no limit: a stream lasts as long as its turn.
func (l Limits) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: spared(h), ReadHeaderTimeout: l.Header, ReadTimeout: l.Body, IdleTimeout: l.Idle, MaxHeaderBytes: maxHeader,
		ConnState: func(c net.Conn, state http.ConnState) {
			if c, ours := under(c).(*conn); ours {
				c.all.moved(c, state)
			}
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if c, ours := under(c).(*conn); ours && c.spare {
				return context.WithValue(ctx, spareKey{}, true)
			}
			return ctx
		},
	}
}

// under is the connection below TLS.
func under(c net.Conn) net.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return c
}

// Listener bounds the connections of a listener. If there are too many, it closes one of the
// address with the most connections: the one that has waited longest for a request.
func (l Limits) Listener(of net.Listener) net.Listener {
	return &listener{Listener: of, limits: l, conns: map[*conn]struct{}{}, from: map[string]int{}}
}

type spareKey struct{}

// spared answers only health checks on a spare connection.
func spared(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if spare, _ := r.Context().Value(spareKey{}).(bool); spare && r.URL.Path != "/livez" && r.URL.Path != "/readyz" && r.URL.Path != "/health" {
			w.Header().Set("Connection", "close")
			// net/http reads what the client still owes of a body, and would wait for a slow one.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // fails where there is none
			p := problem.New(intents.Overloaded, "", "there are too many connections")
			p.RetryAfter = time.Second
			p.Write(w)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Check refuses a request because of its header, before its body is read. It returns nil if the
// header is valid. Bodies must be JSON and not compressed, so that none exceeds its stated length.
// Forms and plain text, which any web page can send for its visitor, are refused.
func Check(r *http.Request) *problem.Problem {
	size := len(r.RequestURI)
	for name, values := range r.Header {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	if size > refuseHeader {
		return refuse(http.StatusRequestHeaderFieldsTooLarge, intents.PayloadTooLarge, "path and header have more than 32 KiB", "send less in the header")
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return refuse(http.StatusUnsupportedMediaType, intents.SchemaInvalid, "compressed bodies are not accepted", "send it without Content-Encoding")
	}
	if strings.Contains(r.Header.Get("Range"), ",") {
		return refuse(http.StatusRequestedRangeNotSatisfiable, intents.SchemaInvalid, "a request asks for one range", "ask for one range, or for all of it")
	}
	if t := r.Header.Get("Content-Type"); t != "" && r.ContentLength != 0 && !isJSON(t) {
		return refuse(http.StatusUnsupportedMediaType, intents.SchemaInvalid, "the Content-Type says that the body is not JSON", "send Content-Type: application/json")
	}
	return nil
}

func refuse(status int, code intents.Code, detail, hint string) *problem.Problem {
	p := problem.New(code, "", detail)
	p.Status, p.Hint = status, hint
	return p
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasPrefix(t, "application/") && strings.HasSuffix(t, "+json"))
}

// traceparent is W3C trace context: version, trace id, parent, flags.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}`)

// TraceID is the trace of a request: that of its Traceparent, or a new one.
func TraceID(r *http.Request) string {
	if m := traceparent.FindStringSubmatch(r.Header.Get("Traceparent")); m != nil && m[1] != "00000000000000000000000000000000" {
		return m[1]
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
