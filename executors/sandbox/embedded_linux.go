//go:build amd64 || arm64

package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// findRuntime is the runtime of the interpreter at path or, if that is empty, of
// the first usable one; where there is none, of the one that this program
// carries, if it does.
func findRuntime(ctx context.Context, base, path string) (runtimeDir, error) {
	p, err := findPython(ctx, path)
	switch {
	case err == nil:
		return prepareRuntime(ctx, base, p)
	case path != "" || embeddedPython == "" || ctx.Err() != nil:
		return runtimeDir{}, err
	}
	return prepareEmbedded(ctx, base)
}

// prepareEmbedded is prepareRuntime for the Python that this program carries. It
// is unpacked only to build the runtime.
func prepareEmbedded(ctx context.Context, base string) (runtimeDir, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s\n%x\nembedded %s\n", recipe, sha256.Sum256(bootScript), embeddedPython))
	final := filepath.Join(base, fmt.Sprintf("%s%s-%x", readyPrefix, embeddedPython, key[:8]))
	if rt, err := readyRuntime(final); !errors.Is(err, fs.ErrNotExist) {
		return rt, err
	}
	tmp, err := os.MkdirTemp(base, buildPrefix)
	if err != nil {
		return runtimeDir{}, err
	}
	defer os.RemoveAll(tmp)
	home := filepath.Join(tmp, "python")
	if err := extractPython(home); err != nil {
		return runtimeDir{}, fmt.Errorf("unpack the embedded python: %w", err)
	}
	p, err := askPython(ctx, filepath.Join(home, "bin", "python3"))
	if err != nil {
		return runtimeDir{}, fmt.Errorf("embedded python (it needs glibc): %w", err)
	}
	p.Urandom = true
	return makeRuntime(ctx, base, final, p)
}

// randomDevice is where an interpreter that was built for kernels without
// getrandom reads its randomness.
const randomDevice = "dev/urandom"

// makeRandomPlace puts a file into a runtime that the device is mounted on.
func makeRandomPlace(dir string) error {
	path := filepath.Join(dir, randomDevice)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: sandboxes of another user pass
		return err
	}
	return os.WriteFile(path, nil, 0o444) //nolint:gosec // G306: sandboxes of another user read it
}
