//go:build amd64 || arm64

package sandbox

import "context"

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
