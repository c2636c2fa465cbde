package httpapi_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"aob.dev/writ/intents"
)

// slow is a body whose sender has sent a part and waits.
type slow struct {
	part  io.Reader
	began func()
	more  <-chan struct{}
}

func (s *slow) Read(p []byte) (int, error) {
	if n, _ := s.part.Read(p); n > 0 {
		return n, nil
	}
	if s.began != nil {
		s.began()
		s.began = nil
	}
	<-s.more
	return 0, io.ErrUnexpectedEOF
}

// sendSlowly begins n batches of size bytes from one address, which stay unfinished until end is
// called. It returns when all have come so far or were refused, with the number of the refused
// ones.
func (e *entrance) sendSlowly(n, size int, address string) (refused int, end func()) {
	e.Helper()
	more, came := make(chan struct{}), make(chan bool, n)
	var all sync.WaitGroup
	for range n {
		req := httptest.NewRequestWithContext(e.Context(), http.MethodPost, "/v1/batches", &slow{
			part: bytes.NewReader(bytes.Repeat([]byte(" "), size)), began: func() { came <- true }, more: more,
		})
		req.RemoteAddr = address
		all.Go(func() {
			w := httptest.NewRecorder()
			e.plain.ServeHTTP(w, req)
			if w.Code == http.StatusTooManyRequests {
				came <- false
			}
		})
	}
	for range n {
		if !<-came {
			refused++
		}
	}
	return refused, func() { close(more); all.Wait() }
}

// Senders that stall hold no slot, and one address cannot take all capacity.
func TestSlowBatchesHoldNobodyUp(t *testing.T) {
	e := open(t)
	for name, flood := range map[string]struct {
		n, size int
		refused bool
	}{
		"that have sent nothing":    {200, 0, false},
		"that have sent nearly all": {200, 1 << 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			refused, end := e.sendSlowly(flood.n, flood.size, "192.0.2.66:1")
			defer end()
			if (refused > 0) != flood.refused {
				t.Errorf("%d refused", refused)
			}
			if b := decoded[intents.BatchAnswer](t, e.batch("", e.Sign(find(e)))); b.Code != intents.OK {
				t.Errorf("%+v", b)
			}
		})
	}
}
