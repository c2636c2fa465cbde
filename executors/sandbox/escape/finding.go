package escape

import (
	"context"

	"aob.dev/writ/executors/sandbox"
)

// Runner runs jobs in sandboxes of one driver; *sandbox.Sandbox is one.
type Runner interface {
	Driver() string
	Run(ctx context.Context, job sandbox.Job) (sandbox.Result, error)
}

var _ Runner = (*sandbox.Sandbox)(nil)

// Verdict on one probe under one driver.
type Verdict string

// The closed set of verdicts.
const (
	Blocked Verdict = "blocked"
	Known   Verdict = "open"    // got through where it is known to
	Escaped Verdict = "ESCAPED" // got through
	Broken  Verdict = "broken"  // ended otherwise than expected, so that it proves nothing
)

// Finding is the result of one probe under one driver.
type Finding struct {
	Probe   string   `json:"probe"`
	Group   string   `json:"group"`
	Layers  []string `json:"layers"`
	Driver  string   `json:"driver"`
	Verdict Verdict  `json:"verdict"`
	Outcome string   `json:"outcome"` // of the run
	Detail  string   `json:"detail"`  // if it was not blocked; under control of the probe
}

// Holds reports whether the finding is as promised.
func (f Finding) Holds() bool { return f.Verdict == Blocked || f.Verdict == Known }
