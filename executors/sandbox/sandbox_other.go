//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"time"
)

var errPlatform = errors.New("sandbox: scripts and skill servers run on Linux only; use a Linux machine or container")

// Sandbox cannot be opened on this platform.
type Sandbox struct{}

// Instance does not exist on this platform.
type Instance struct{}

// Open fails on this platform.
func Open(context.Context, Config) (*Sandbox, error) { return nil, errPlatform }

// Driver is empty on this platform.
func (*Sandbox) Driver() string { return "" }

// Python is empty on this platform.
func (*Sandbox) Python() string { return "" }

// Run fails on this platform.
func (*Sandbox) Run(context.Context, Job) (Result, error) { return Result{}, errPlatform }

// WaitWarm fails on this platform.
func (*Sandbox) WaitWarm(context.Context) error { return errPlatform }

// Load is nothing on this platform.
func (*Sandbox) Load() (running, waiting int) { return 0, 0 }

// Stop does nothing on this platform.
func (*Sandbox) Stop(time.Duration) {}

// Close does nothing on this platform.
func (*Sandbox) Close() error { return nil }

// Prepare fails on this platform.
func Prepare(context.Context, Config) (RuntimeDir, error) { return RuntimeDir{}, errPlatform }

// Survey fails on this platform.
func Survey(context.Context, Config) (SurveyResult, error) { return SurveyResult{}, errPlatform }

// Servers cannot be started on this platform.
type Servers struct{}

// NewServers does nothing on this platform.
func NewServers() *Servers { return &Servers{} }

// Start fails on this platform.
func (*Servers) Start(Server) (*ServerProcess, error) { return nil, errPlatform }

// Close does nothing on this platform.
func (*Servers) Close() {}
