package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"aob.dev/writ/intents/catalog"
)

// marks of nodes.
var marks = map[catalog.StepStatus]string{
	catalog.StepDone: "[x]", catalog.StepRunning: "[>]", catalog.StepPendingApproval: "[?]", catalog.StepFailed: "[!]", catalog.StepSkipped: "[-]",
}

// runText draws a run in plain characters: its nodes in layers, each behind those that lead to
// it, with the edges from there.
func runText(p catalog.PlanView, c paint) string {
	var b strings.Builder
	r := p.Run
	fmt.Fprintf(&b, "run       %s\nworkflow  %s, version %s\nasked by  %s\nstarted   %s\nstatus    %s, revision %d\n",
		p.PlanID, r.WorkflowID, printable(r.Version), printable(p.UserID), p.CreatedAt.UTC().Format(time.RFC3339), p.Status, p.Revision)
	if r.ReplayOf != "" {
		fmt.Fprintf(&b, "repeats   %s from %s, %s\n", r.ReplayOf, r.FromNode, r.Mode)
	}
	if p.Response != "" {
		fmt.Fprintf(&b, "answer    %s\n", printable(p.Response))
	}
	if p.Failure != nil {
		fmt.Fprintf(&b, "failed    %s\n", printable(p.Failure.Reason))
	}
	layer := nodeLayers(p)
	last := 0
	for _, l := range layer {
		last = max(last, l)
	}
	b.WriteString("\n" + aligned(func(t io.Writer) {
		for n := 1; n <= last; n++ {
			number := fmt.Sprint(n)
			for _, s := range p.Steps {
				if layer[s.ID] != n {
					continue
				}
				mark := c.status(s.Status, cmp.Or(marks[s.Status], "[ ]"))
				fmt.Fprintf(t, "%s\t%s %s\t%s\t%s\n", number, mark, s.ID, kindOf(s), note(s))
				for _, e := range r.Edges {
					if e.To == s.ID {
						fmt.Fprintf(t, "\t      %s\n", edgeText(e))
					}
				}
				number = ""
			}
		}
	}))
	b.WriteString("\n[x] done  [>] running  [?] waits for people  [!] failed  [-] skipped  [ ] to come\n")
	return b.String()
}

// status colours a mark.
func (p paint) status(s catalog.StepStatus, mark string) string {
	switch s {
	case catalog.StepDone:
		return p.green(mark)
	case catalog.StepFailed:
		return p.red(mark)
	case catalog.StepRunning, catalog.StepPendingApproval:
		return p.bold(mark)
	default:
		return p.dim(mark)
	}
}

// nodeLayers are 1 for nodes to which no edge leads, and for others one more than that of the
// last node before it.
func nodeLayers(p catalog.PlanView) map[string]int {
	out := make(map[string]int, len(p.Steps))
	for _, s := range p.Steps {
		out[s.ID] = 1
	}
	for range p.Steps { // no path is longer
		moved := false
		for _, e := range p.Run.Edges {
			if out[e.To] <= out[e.From] {
				out[e.To], moved = out[e.From]+1, true
			}
		}
		if !moved {
			break
		}
	}
	return out
}

func kindOf(s catalog.StepView) string {
	switch {
	case s.Agent != "":
		return "agent " + s.Agent
	case s.Type == "function" && len(s.Skills) == 1:
		return "function " + s.Skills[0]
	}
	return s.Type
}

// note has further remarks about a node.
func note(s catalog.StepView) string {
	switch {
	case s.Status == catalog.StepFailed:
		return oneLine(s.FailureReason, 100)
	case s.Status == catalog.StepPending && s.RetryAt != nil:
		return "again at " + s.RetryAt.UTC().Format(time.RFC3339) + ": " + oneLine(s.FailureReason, 80)
	case s.Status == catalog.StepPendingApproval:
		return "writ approvals list"
	}
	return ""
}

func edgeText(e catalog.RunEdge) string {
	text := "<- " + e.From
	if e.Condition != "" {
		text += " if " + oneLine(e.Condition, 100)
	}
	if e.Holds != nil {
		text += map[bool]string{true: "  yes", false: "  no"}[*e.Holds]
	}
	return text
}
