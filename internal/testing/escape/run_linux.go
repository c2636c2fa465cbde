//go:build amd64 || arm64

package escape

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/executors/sandbox"
)

// Try runs one probe. An error means that there is no finding.
func (p Probe) Try(ctx context.Context, runner sandbox.Runner, b *Bait) (Finding, error) {
	before, err := b.victim()
	if err != nil {
		return Finding{}, err
	}
	script := b.definitions() + Prelude + p.Script
	res, err := runner.Run(ctx, sandbox.Job{Script: script, Input: strings.NewReader("data"), Limits: p.Limits})
	if err != nil {
		return Finding{}, fmt.Errorf("probe %s: %w", p.Name, err)
	}
	after, err := b.victim()
	if err != nil {
		return Finding{}, err
	}
	f := Finding{Probe: p.Name, Group: p.Group, Layers: p.Layers, Driver: runner.Driver(), Outcome: string(res.Outcome)}
	f.Verdict, f.Detail = p.judge(res)
	if before != after {
		f.Verdict, f.Detail = Escaped, fmt.Sprintf("victim changed from %+v to %+v", before, after)
	}
	// A known gap never excuses a leaked secret.
	if f.Verdict == Escaped && before == after && !strings.Contains(string(res.Output), secret) && slices.Contains(p.Open, f.Driver) {
		f.Verdict = Known
	}
	return f, nil
}

// judge reads a run's result.
func (p Probe) judge(res sandbox.Result) (Verdict, string) {
	out := string(res.Output)
	switch {
	case strings.Contains(out, "ESCAPED") || strings.Contains(out, secret):
		return Escaped, remarkable(out)
	// A layer before the one that kills answered an error: the scratch maps no code, for example.
	case p.Expect == sandbox.Policy && res.Outcome == sandbox.OK && strings.Contains(out, "blocked"):
		return Blocked, ""
	case res.Outcome != p.Expect:
		return Broken, fmt.Sprintf("%s, expected %s: %s", res.Outcome, p.Expect, res.Error)
	case p.Expect == sandbox.OK && !strings.Contains(out, "blocked"):
		return Broken, fmt.Sprintf("nothing was tried: %q", out)
	}
	return Blocked, ""
}

// remarkable are the first lines of a probe's output that are not "blocked".
func remarkable(out string) string {
	const most = 5
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(l string) bool { return strings.HasPrefix(l, "blocked") })
	return strings.Join(lines[:min(len(lines), most)], "; ")
}
