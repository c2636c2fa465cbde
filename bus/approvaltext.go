package bus

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/internal/visible"
)

// Skill returns the skill that the intent calls; empty if it calls none or a policy masks it.
func (h PendingApproval) Skill() string {
	var args struct {
		Skill string `json:"skill"`
	}
	if json.Unmarshal(h.Args, &args) != nil {
		return ""
	}
	return args.Skill
}

// Text returns everything that a yes approves, in lines. The action comes first, nothing is cut,
// and every character is visible. Text written by others cannot add a line.
func (h PendingApproval) Text() string {
	var b strings.Builder
	line := func(name, text string) { fmt.Fprintf(&b, "%-9s %s\n", name, visible.Text(text, "")) }
	line("type", h.Type)
	if skill := h.Skill(); skill != "" {
		line("skill", skill)
	}
	line("intent", h.IntentID)
	line("asked by", h.UserID)
	if h.PlanID != "" {
		line("plan", fmt.Sprintf("%s, step %d", h.PlanID, h.Step))
	}
	line("held", h.PendingSince)
	line("deadline", h.Deadline)
	h.question(&b)
	for _, r := range h.Rules {
		line("rule", fmt.Sprintf("%s: %s (%d of %s)", r.ID, r.Reason, r.Count, strings.Join(slices.Concat(r.Approvers, r.Roles), ", ")))
	}
	for _, a := range h.Approved {
		line("approved", a.UserID+" at "+a.At)
	}
	return b.String()
}

// question writes the question put to people, or the arguments of the intent.
func (h PendingApproval) question(b *strings.Builder) {
	var ask struct {
		Title, Detail string
		Items         []struct{ ID, Text string }
	}
	if h.Type != "approval.ask" || json.Unmarshal(h.Args, &ask) != nil {
		writeArgs(b, h.Args)
		return
	}
	fmt.Fprintf(b, "question  %s\n", visible.Text(ask.Title, ""))
	for text := range strings.Lines(ask.Detail) {
		fmt.Fprintf(b, "          %s\n", visible.Text(strings.TrimSuffix(text, "\n"), ""))
	}
	for _, x := range ask.Items {
		fmt.Fprintf(b, "item      %s: %s\n", visible.Text(x.ID, ""), visible.Text(x.Text, ""))
	}
}

// writeArgs writes arguments: a text of several lines, such as a script, as lines, and everything
// else as JSON.
func writeArgs(b *strings.Builder, raw json.RawMessage) {
	var args map[string]json.RawMessage
	if json.Unmarshal(raw, &args) != nil {
		fmt.Fprintf(b, "args      %s\n", oneLine(raw))
		return
	}
	if len(args) == 0 {
		b.WriteString("args      none\n")
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		label := "args      " + visible.Text(name, "")
		var text string
		if json.Unmarshal(args[name], &text) != nil {
			fmt.Fprintf(b, "%s: %s\n", label, oneLine(args[name]))
			continue
		}
		text = strings.TrimSuffix(text, "\n")
		if name != "script" && !strings.Contains(text, "\n") {
			fmt.Fprintf(b, "%s: %s\n", label, visible.Text(text, ""))
			continue
		}
		fmt.Fprintf(b, "%s:\n", label)
		for row := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(b, "  | %s\n", visible.Text(row, "\t"))
		}
	}
}

// oneLine returns a document in one line.
func oneLine(raw json.RawMessage) string { return visible.Text(string(visible.JSON(raw)), "") }
