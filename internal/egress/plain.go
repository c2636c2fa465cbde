package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// ReasonError is a fault in words for people.
type ReasonError struct {
	Message string
	Mend    Mend
	Err     error // in the words of whoever returned it
}

func (r *ReasonError) Error() string { return r.Message }
func (r *ReasonError) Unwrap() error { return r.Err }

// Mend is the remedy for a fault.
type Mend int

// Remedies.
const (
	Look   Mend = iota // unknown here: see the server's log
	Start              // the server is not there, or not at this address
	Name               // another server is there, or another path is meant
	Secret             // other credentials
	Trust              // another certificate, or authority of it
	Wait               // time
)

// Plain describes for people why a request got no answer. It is the only place that words
// connection faults. Other errors are returned unchanged. The result wraps err.
func Plain(err error) error {
	if says, mend := fault(err); says != "" {
		return &ReasonError{says, mend, err}
	}
	return err
}

// closedEarly describes a peer that ended a connection.
const closedEarly = "it closed the connection without an answer"

func fault(err error) (says string, mend Mend) {
	var name *net.DNSError
	var timed net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "the request was given up", Wait
	case errors.As(err, &name) && name.IsNotFound:
		return "there is no host " + name.Name, Name
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there (connection refused)", Start
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no network leads there", Name
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return "no answer in time", Start
	case hungUp(err):
		return closedEarly, Start
	}
	return insecure(err)
}

// hungUp reports that the peer ended the connection. net/http has a value of its own for this,
// which it does not export, for each place where it notices: only their texts can be asked.
func hungUp(err error) bool {
	for _, is := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE} {
		if errors.Is(err, is) {
			return true
		}
	}
	for _, says := range []string{"http: server closed idle connection", "http2: client connection lost", "http2: client conn is closed", "http2: server sent GOAWAY and closed the connection"} {
		if strings.Contains(err.Error(), says) {
			return true
		}
	}
	return false
}

// insecure words a TLS handshake that failed.
func insecure(err error) (says string, mend Mend) {
	var host x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &host):
		return "its certificate is for another host", Trust
	case errors.As(err, &unknown):
		return "its certificate is of an authority that is not known here", Trust
	case errors.As(err, &invalid):
		return "its certificate is not valid (expired, or for another use)", Trust
	case errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return "it speaks no TLS", Name
	}
	return "", Look
}

// Status is an answer of HTTP that refuses a request.
func Status(code int) *ReasonError {
	r := &ReasonError{Mend: Look}
	switch {
	case code == http.StatusUnauthorized:
		r.Message, r.Mend = "it does not take the credentials", Secret
	case code == http.StatusForbidden:
		r.Message, r.Mend = "it does not permit this with these credentials", Secret
	case code >= 300 && code < 400:
		r.Message, r.Mend = "it sends on to another address, where nothing is sent", Name
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code == http.StatusGone:
		r.Message, r.Mend = "it has nothing of the kind at this address", Name
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		r.Message, r.Mend = "it has too much to do, or is not ready", Wait
	case code >= 500:
		r.Message = "it fails"
	default:
		r.Message = "it refuses the request"
	}
	r.Message += fmt.Sprintf(" (HTTP %d)", code)
	return r
}

// Server is one that the operator has named, as errors tell of it.
type Server struct {
	Name       string // kind and place, without credentials
	Unaffected string // what still works without it
	Address    string // the setting of its address
	Secret     string // the setting of its credentials; empty: it has none
	CA         string // the setting of its authority; empty: that of the machine counts
	Try        string // the command that retries it; empty: it is retried automatically
	Quiet      bool   // no foreign texts: they may quote the request, or a secret URL
}

// Fault describes the failure of the server, what still works and the remedy, and wraps err. A
// library's text comes last, if it adds information.
func (s Server) Fault(err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok { // it has the advice
		return &fail{fmt.Sprintf("%s: %v; %s", s.Name, refused, s.Unaffected), err}
	}
	var r *ReasonError
	if !errors.As(err, &r) && !errors.As(Plain(err), &r) {
		r = &ReasonError{"it fails", Look, err}
	}
	text := fmt.Sprintf("%s: %s; %s; %s", s.Name, r.Message, s.Unaffected, s.mend(r.Mend))
	if s.Try != "" {
		text += ", then: " + s.Try
	}
	if r.Err != nil && !s.Quiet && r.Mend != Start && r.Mend != Wait {
		text += fmt.Sprintf(" (cause: %v)", r.Err)
	}
	return &fail{text, err}
}

func (s Server) mend(m Mend) string {
	switch {
	case m == Secret && s.Secret != "":
		return "correct " + s.Secret
	case m == Trust && s.CA != "":
		return "name the file of its authority with " + s.CA
	case m == Start:
		return "start it, or correct " + s.Address
	case m == Name, m == Trust, m == Secret:
		return "correct " + s.Address
	case m == Wait:
		return "wait"
	default:
		return "see its log"
	}
}

// fail is an error in words that are put together.
type fail struct {
	message string
	err     error
}

func (f *fail) Error() string { return f.message }
func (f *fail) Unwrap() error { return f.err }
