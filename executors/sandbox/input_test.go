//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestRunCanceled(t *testing.T) {
	s := open(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	// The input blocks until the sandbox is up, which is when the run is ended.
	_, err := s.Run(ctx, Job{Script: "while True: pass", Input: readFunc(func([]byte) (int, error) {
		cancel()
		return 0, io.EOF
	})})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestRunInputFails(t *testing.T) {
	broken := errors.New("disk on fire")
	s := open(t, Config{})
	_, err := s.Run(t.Context(), Job{Script: "print(1)", Input: readFunc(func([]byte) (int, error) { return 0, broken })})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	big := io.LimitReader(zeros{}, 3<<20)
	_, err = s.Run(t.Context(), Job{Script: "print(1)", Input: big, Limits: Limits{Scratch: 1 << 20}})
	if !errors.Is(err, ErrInputSize) {
		t.Errorf("too large: got %v", err)
	}
	if _, err := s.Run(t.Context(), Job{Input: big, InputSize: maxInput + 1}); !errors.Is(err, ErrInputSize) {
		t.Errorf("far too large: got %v", err)
	}
	if _, err := s.Run(t.Context(), Job{Script: strings.Repeat("#", maxScript+1)}); !errors.Is(err, ErrScript) {
		t.Errorf("script: got %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
