//go:build amd64 || arm64

package sandbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed canary.py
var canaryScript string

// canaryWall bounds one canary on a busy machine.
const canaryWall = 20 * time.Second

// Probe builds a real sandbox and runs the canary, which tries forbidden actions. An error names the
// layer that is missing or did not hold; then the driver must not be used.
func (d *linuxDriver) Probe(ctx context.Context) error {
	// It is beside the runtimes and readable for all, so that only the sandbox prevents the canary
	// from reading it.
	secret, err := os.CreateTemp(filepath.Dir(d.host.runtime.path), canaryPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(secret.Name())
	defer secret.Close()
	if err := secret.Chmod(0o644); err != nil {
		return err
	}
	limits, err := Limits{Wall: canaryWall, Memory: 256 << 20}.normalize()
	if err != nil {
		return err
	}
	inst, err := d.Start(Profile{Limits: limits, Room: limits.Scratch})
	if err != nil {
		return err
	}
	script := fmt.Sprintf("SECRET = %s\n", strconv.QuoteToASCII(secret.Name())) + canaryScript
	res, err := inst.Run(ctx, Job{Script: script, Input: strings.NewReader("arrived")})
	switch {
	case err != nil:
		return err
	case res.Outcome != OK:
		return fmt.Errorf("canary: %s: %s", res.Outcome, res.Error)
	case string(res.Output) != "input arrived\n":
		return fmt.Errorf("canary: %q", res.Output)
	}
	return nil
}

// choose probes the named drivers, in the order of all, and returns the first that holds.
func choose(ctx context.Context, drivers []*linuxDriver, names []string) (*linuxDriver, error) {
	var refused []error
	for _, d := range drivers {
		if !slices.Contains(names, d.name) {
			continue
		}
		err := d.Probe(ctx)
		if err == nil {
			return d, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		refused = append(refused, fmt.Errorf("driver %s: %w", d.name, err))
	}
	return nil, fmt.Errorf("no driver holds; enable unprivileged user namespaces "+
		"(sysctl user.max_user_namespaces), or Landlock (Linux 6.2, landlock in lsm=):\n%w", errors.Join(refused...))
}

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
