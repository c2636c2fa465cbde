package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Plain says in words for people what kept a request from its answer: the one place that
// words faults of connections. Other errors are returned as they are. The result wraps err.
func Plain(err error) error {
	if says := fault(err); says != "" {
		return &plainError{says, err}
	}
	return err
}

// plainError is an error in other words.
type plainError struct {
	says string
	err  error
}

func (e *plainError) Error() string { return e.says }
func (e *plainError) Unwrap() error { return e.err }

// closedEarly is what a peer did that ended a connection.
const closedEarly = "it closed the connection without an answer"

func fault(err error) string {
	var name *net.DNSError
	var timed net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "the request was given up"
	case errors.As(err, &name) && name.IsNotFound:
		return "there is no host " + name.Name
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there (connection refused)"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no network leads there"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timed) && timed.Timeout():
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return closedEarly
	}
	return ""
}
