//go:build amd64 || arm64

package sandbox

import "context"

// Prepared says what Prepare found or made.
type Prepared struct {
	Path   string // of the runtime directory
	Python string // version
}

// Prepare makes the runtime that Open would make, so that the first start does
// not take the seconds. Nothing of a Config but Dir and Python matters.
func Prepare(ctx context.Context, cfg Config) (Prepared, error) {
	cfg, err := cfg.normalize()
	if err != nil {
		return Prepared{}, err
	}
	h, err := openHost(ctx, cfg)
	if err != nil {
		return Prepared{}, err
	}
	return Prepared{Path: h.runtime.path, Python: h.runtime.image.Python}, h.close()
}
