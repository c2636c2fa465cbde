package edge

import (
	"bytes"
	"maps"
	"net/http"
)

// Tap receives the answer of a handler in this process. It passes the answer on, or keeps it. It is
// not for concurrent use.
type Tap struct {
	Status int          // of a kept answer; 0: none was kept
	Body   bytes.Buffer // of a kept answer

	to     http.ResponseWriter
	keeps  func(status int, h http.Header) bool
	header http.Header
	passed bool // the answer is passed on
}

// Keep returns a Tap that keeps the answer.
func Keep() *Tap { return &Tap{header: http.Header{}} }

// Pass returns a Tap that passes the answer on, unless keeps returns true for it.
func Pass(to http.ResponseWriter, keeps func(status int, h http.Header) bool) *Tap {
	return &Tap{to: to, keeps: keeps, header: http.Header{}}
}

// Header implements http.ResponseWriter.
func (t *Tap) Header() http.Header {
	if t.passed {
		return t.to.Header()
	}
	return t.header
}

// WriteHeader implements http.ResponseWriter.
func (t *Tap) WriteHeader(status int) {
	switch {
	case t.passed || t.Status != 0:
	case t.to == nil || t.keeps(status, t.header):
		t.Status = status
	default:
		t.passed = true
		maps.Copy(t.to.Header(), t.header)
		t.to.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (t *Tap) Write(b []byte) (int, error) {
	t.WriteHeader(http.StatusOK)
	if t.passed {
		return t.to.Write(b)
	}
	return t.Body.Write(b)
}

// Flush implements http.Flusher, for a stream that is passed on.
func (t *Tap) Flush() {
	if t.passed {
		_ = http.NewResponseController(t.to).Flush() // the next write fails
	}
}

// Unwrap is for http.ResponseController.
func (t *Tap) Unwrap() http.ResponseWriter { return t.to }
