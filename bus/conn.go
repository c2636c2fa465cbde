package bus

import (
	"context"
	"errors"
)

// ErrNoResponders means that no process serves the subject: the request had no effect.
var ErrNoResponders = errors.New("bus: nobody listens")

// Handler answers one request. It runs concurrently with itself.
type Handler func(ctx context.Context, data []byte) []byte

// Talker answers one request too, and sends messages before its answer. The requester receives
// them with Conn.Follow.
type Talker func(ctx context.Context, data []byte, say func([]byte)) []byte

// Service is a NATS micro service: `nats micro ls` shows it.
type Service struct {
	Name        string // [a-zA-Z0-9_-]+
	Version     string // semver
	Description string
	Queue       string             // queue group: one member gets each request
	Endpoints   map[string]Handler // subject to handler
	Talkers     map[string]Talker  // more endpoints
	Each        map[string]Handler // endpoints whose requests every process receives; a handler that returns nil sends no reply
	Workers     int                // concurrent requests per endpoint; 0: 64
}

// Frame is one display frame of a turn, as read back.
type Frame struct {
	Seq  uint64 // the SSE id
	Data []byte
}

// Conn is the connection of one process to the bus. Safe for concurrent use.
type Conn interface {
	// Instance identifies the process within its role: only this process serves
	// AgentInstance(role, Instance()) and Grant(role, Instance()).
	Instance() string
	// Request waits for one reply; ErrNoResponders if no process serves the subject, ctx's error if it ends first.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
	// Follow sends a request to a Talker; on is called with every message before the answer.
	Follow(ctx context.Context, subject string, data []byte, on func([]byte)) ([]byte, error)
	Publish(subject string, data []byte) error
	// Serve runs a service until ctx ends, then lets running requests finish, and returns once
	// the service is gone. ready, if not nil, is closed once it listens.
	Serve(ctx context.Context, s Service, ready chan<- struct{}) error
	// Frames yields a subject's frames after a sequence number, waiting for new ones, until ctx
	// ends or fn returns false.
	Frames(ctx context.Context, subject string, after uint64, fn func(Frame) bool) error
	Close()
}
