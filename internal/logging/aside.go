package logging

import (
	"io"
	"sync"
	"time"
)

// asideBytes bounds what waits to be written. What comes above it is dropped.
const asideBytes = 4 << 20

// Aside writes to another writer in a goroutine of its own, so that nobody waits for whoever
// reads there. What the reader is too slow for, and what the writer refuses, is dropped and
// counted. Safe for concurrent use.
type Aside struct {
	to    io.Writer
	told  func(dropped int64) // writes a line of it to the same writer
	ended chan struct{}

	mu      sync.Mutex // guards the rest
	some    *sync.Cond // something waits, or it is closed
	queue   [][]byte
	size    int
	dropped int64
	untold  int64 // of these
	closed  bool
}

// NewAside starts the goroutine; Close ends it. told is called there once what was dropped can
// be said again.
func NewAside(to io.Writer, told func(dropped int64)) *Aside {
	a := &Aside{to: to, told: told, ended: make(chan struct{})}
	a.some = sync.NewCond(&a.mu)
	go a.run()
	return a
}

// Write never waits and never fails. A line is one call.
func (a *Aside) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.size+len(line) > asideBytes {
		a.drop()
		return len(line), nil
	}
	a.queue, a.size = append(a.queue, append([]byte(nil), line...)), a.size+len(line)
	a.some.Signal()
	return len(line), nil
}

func (a *Aside) drop() { a.dropped, a.untold = a.dropped+1, a.untold+1 }

// Dropped is how many lines were.
func (a *Aside) Dropped() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dropped
}

// Close gives what waits a time to be written. Lines that come later are dropped.
func (a *Aside) Close(within time.Duration) {
	a.mu.Lock()
	a.closed = true
	a.some.Signal()
	a.mu.Unlock()
	select {
	case <-a.ended:
	case <-time.After(within):
	}
}

func (a *Aside) run() {
	defer close(a.ended)
	for {
		line, untold, more := a.next()
		if !more {
			return
		}
		if untold > 0 {
			a.told(untold)
		}
		if _, err := a.to.Write(line); err != nil {
			a.mu.Lock()
			a.untold += untold
			a.drop()
			a.mu.Unlock()
		}
	}
}

// next waits for a line. untold were dropped and not said yet.
func (a *Aside) next() (line []byte, untold int64, more bool) {
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
	untold, a.untold = a.untold, 0
	return line, untold, true
}
