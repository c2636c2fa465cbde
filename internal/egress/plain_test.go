package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestPlain: what a connection broke off with is said in words, is still the same error, and
// nothing else is reworded.
func TestPlain(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + dead.Addr().String()
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, refused := http.DefaultClient.Do(req) //nolint:bodyclose // there is none
	for says, err := range map[string]error{
		"nothing listens there":    refused,
		"there is no host nowhere": &net.DNSError{Name: "nowhere", IsNotFound: true},
		"no network leads there":   &net.OpError{Err: syscall.EHOSTUNREACH},
		"no answer in time":        fmt.Errorf("Post: %w", context.DeadlineExceeded),
		"given up":                 fmt.Errorf("Post: %w", context.Canceled),
		closedEarly:                fmt.Errorf("Post: %w", io.EOF),
		"x509: unknown":            errors.New("x509: unknown"),
	} {
		got := Plain(err)
		if !strings.Contains(got.Error(), says) || strings.Contains(got.Error(), "dial tcp") || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
