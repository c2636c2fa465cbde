package catalog

import "slices"

// MaxLive is how many tasks of a plan live at once.
const MaxLive = 4

// Reads are the steps whose results a step works on.
func (s PlanStep) Reads() []int {
	if s.InputFromStep > 0 {
		return []int{s.InputFromStep}
	}
	return s.Inputs
}

// Retained reports whether a revision leaves a step as it is: it is done, or has begun and
// may end well.
func (s StepView) Retained() bool {
	switch s.Status {
	case StepDone, StepPendingApproval:
		return true
	case StepPending:
		return s.TaskID != ""
	default:
		return false
	}
}

// Ready are the steps of a plan that can be opened: every step that each
// waits for is done.
func (p PlanView) Ready() []StepView {
	done := make(map[int]bool)
	var ready []StepView
	for i, s := range p.Steps {
		done[s.Step] = s.Status == StepDone
		waits := slices.Concat(s.Reads(), s.After)
		if i > 0 && len(s.After) == 0 && !s.Parallel {
			waits = append(waits, p.Steps[i-1].Step)
		}
		waiting := slices.ContainsFunc(waits, func(n int) bool { return !done[n] })
		if s.Status == StepPending && !waiting {
			ready = append(ready, s)
		}
	}
	return ready
}
