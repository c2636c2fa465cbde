//go:build !linux || !(amd64 || arm64)

package sandbox

import "errors"

// Servers cannot be started on this platform.
type Servers struct{}

// NewServers does nothing on this platform.
func NewServers() *Servers { return &Servers{} }

// Start fails on this platform.
func (*Servers) Start(Server) (*ServerProcess, error) {
	return nil, errors.New("a skill server can be isolated on Linux only")
}

// Close does nothing on this platform.
func (*Servers) Close() {}
