package logging

import (
	"io"
	"sync"
	"time"
)

// maxQueueBytes bounds the queue. Lines above it are dropped.
const maxQueueBytes = 4 << 20

// AsyncWriter writes to another writer in a goroutine of its own, so that nobody waits for its
// reader. Lines that the reader is too slow for, or that the writer refuses, are dropped and
// counted. Safe for concurrent use.
type AsyncWriter struct {
	to     io.Writer
	report func(dropped int64) // writes a line of it to the same writer
	ended  chan struct{}

	mu         sync.Mutex // guards the rest
	some       *sync.Cond // something waits, or it is closed
	queue      [][]byte
	size       int
	dropped    int64
	unreported int64 // of these
	closed     bool
}

// NewAsyncWriter starts the goroutine; Close ends it. told is called there with the number of
// dropped lines once writing works again.
func NewAsyncWriter(to io.Writer, told func(dropped int64)) *AsyncWriter {
	a := &AsyncWriter{to: to, report: told, ended: make(chan struct{})}
	a.some = sync.NewCond(&a.mu)
	go a.run()
	return a
}

// Write never waits and never fails. A line is one call.
func (a *AsyncWriter) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.size+len(line) > maxQueueBytes {
		a.drop()
		return len(line), nil
	}
	a.queue, a.size = append(a.queue, append([]byte(nil), line...)), a.size+len(line)
	a.some.Signal()
	return len(line), nil
}

func (a *AsyncWriter) drop() { a.dropped, a.unreported = a.dropped+1, a.unreported+1 }

// Dropped is how many lines were.
func (a *AsyncWriter) Dropped() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dropped
}

// Close gives queued lines a time to be written. Lines that come later are dropped.
func (a *AsyncWriter) Close(within time.Duration) {
	a.mu.Lock()
	a.closed = true
	a.some.Signal()
	a.mu.Unlock()
	select {
	case <-a.ended:
	case <-time.After(within):
	}
}

func (a *AsyncWriter) run() {
	defer close(a.ended)
	for {
		line, untold, more := a.next()
		if !more {
			return
		}
		if untold > 0 {
			a.report(untold)
		}
		if _, err := a.to.Write(line); err != nil {
			a.mu.Lock()
			a.unreported += untold
			a.drop()
			a.mu.Unlock()
		}
	}
}

// next waits for a line. untold is the number of dropped lines not reported yet.
func (a *AsyncWriter) next() (line []byte, untold int64, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue) == 0 {
		if a.closed {
			return nil, 0, false
		}
		a.some.Wait()
	}
	line, a.queue = a.queue[0], a.queue[1:]
	a.size -= len(line)
	untold, a.unreported = a.unreported, 0
	return line, untold, true
}
