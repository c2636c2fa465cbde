//go:build amd64 || arm64

package sandbox

import "context"

// Prepared says what Prepare found or made.
type Prepared struct {
	Path   string // of the runtime directory
	Python string // version

	// Bare executes this Python without a sandbox: the words of a command to which
	// Python's own arguments are added. No script of a model belongs there.
	Bare []string
}

// Prepare makes the runtime that Open would make, so that the first start is not
// slow. It uses only Dir and Python of the Config.
func Prepare(ctx context.Context, cfg Config) (Prepared, error) {
	cfg, err := cfg.normalize()
	if err != nil {
		return Prepared{}, err
	}
	h, err := openHost(ctx, cfg)
	if err != nil {
		return Prepared{}, err
	}
	rt := h.runtime
	return Prepared{Path: rt.path, Python: rt.image.Python, Bare: rt.image.interpreter(rt.path)}, h.close()
}
