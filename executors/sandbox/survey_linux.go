//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"slices"
)

// Survey tries every driver with its canary, also those that cfg does not accept.
// An error means that there is no runtime to try them with.
func Survey(ctx context.Context, cfg Config) (SurveyResult, error) {
	cfg, err := cfg.normalize()
	if err != nil {
		return SurveyResult{}, err
	}
	h, err := openHost(ctx, cfg)
	if err != nil {
		return SurveyResult{}, err
	}
	s := SurveyResult{Python: h.runtime.image.Python, Refused: map[string]error{}}
	for _, d := range h.drivers() {
		if err := d.Probe(ctx); err != nil {
			s.Refused[d.name] = err
		} else if s.Driver == "" && slices.Contains(cfg.tried, d.name) {
			s.Driver = d.name
		}
	}
	return s, errors.Join(ctx.Err(), h.close())
}

// Prepare makes the runtime that Open would make, so that the first start is not
// slow. It uses only Dir and Python of the Config.
func Prepare(ctx context.Context, cfg Config) (RuntimeDir, error) {
	cfg, err := cfg.normalize()
	if err != nil {
		return RuntimeDir{}, err
	}
	h, err := openHost(ctx, cfg)
	if err != nil {
		return RuntimeDir{}, err
	}
	rt := h.runtime
	return RuntimeDir{Path: rt.path, Python: rt.image.Python, Bare: rt.image.interpreter(rt.path)}, h.close()
}
