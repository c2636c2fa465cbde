package agents

import (
	"fmt"
	"slices"
)

// today are the tools of this system that agents can use already; the loop offers them by
// itself once a result is large.
var today = []string{"action", AskAgent, "ask_people", "exec_python", "read_lines", "remind_me", "search"}

// Ahead names what the agents have that does not work yet.
func (r *Revision) Ahead() Faults {
	var out Faults
	for _, d := range r.Agents {
		say := func(pointer, reason string) {
			out = append(out, Fault{File: d.File, Line: d.line(pointer), Pointer: pointer, Reason: reason})
		}
		for i, t := range d.Tools {
			at := fmt.Sprintf("/tools/%d", i)
			if t.Server == "" && !slices.Contains(today, t.Name) {
				say(at, "there is no tool "+t.Name+" yet: the agent works without it")
			}
		}
	}
	return out
}
