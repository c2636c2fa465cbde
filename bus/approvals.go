package bus

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/internal/visible"
)

// ApprovalsRequest asks for pending approvals, newest first: those that a user may decide, and the
// user's own.
type ApprovalsRequest struct {
	IntentID string `json:"intent_id,omitempty"` // only this one
	Mine     bool   `json:"mine,omitempty"`      // only those that the user requested
	Type     string `json:"type,omitempty"`      // only of this intent type
	Brief    bool   `json:"brief,omitempty"`     // without arguments and summaries
	Limit    int    `json:"limit,omitempty"`     // 1 to 100; 0: 20
	After    string `json:"after,omitempty"`     // a cursor
}

// ApprovalsReply is a page of pending approvals.
type ApprovalsReply struct {
	Approvals []PendingApproval `json:"approvals"`
	Cursor    string            `json:"cursor,omitempty"` // of the next page
	// Standing approvals of the tenant, for those who may approve, or of the user; on the first page of all.
	Standing []StandingApproval `json:"standing,omitempty"`
}

// StandingApproval is a standing approval, as people see it: a yes that also counts for later calls of a session.
type StandingApproval struct {
	IntentID  string   `json:"intent_id"` // of the call that it was given for
	UserID    string   `json:"user_id"`   // who asks
	SessionID string   `json:"session_id"`
	Skill     string   `json:"skill"`
	Free      []string `json:"free,omitempty"`
	Left      int      `json:"left"`  // how many calls
	Until     string   `json:"until"` // RFC 3339
	By        string   `json:"by"`    // who has approved
	At        string   `json:"at"`    // RFC 3339
}

// PendingApproval is an intent that waits for approval, as shown to approvers.
type PendingApproval struct {
	IntentID     string          `json:"intent_id"`
	Position     int64           `json:"position"`
	TenantID     string          `json:"tenant_id"`
	UserID       string          `json:"user_id"` // requester
	Type         string          `json:"type"`
	Summary      string          `json:"summary"` // what it does, in a sentence
	Args         json.RawMessage `json:"args"`    // without the members that its rules mask
	PlanID       string          `json:"plan_id,omitempty"`
	Step         int             `json:"step,omitempty"`
	Reason       string          `json:"reason"`
	HasRead      []string        `json:"has_read,omitempty"` // sources whose content the task had read that asks for it
	Rules        []PendingRule   `json:"rules"`
	Approved     []Vote          `json:"approved"` // votes so far that count
	PendingSince string          `json:"held_at"`  // RFC 3339
	Deadline     string          `json:"deadline"` // RFC 3339
	MayDecide    bool            `json:"may_decide"`
	Mine         bool            `json:"mine"`
	URL          string          `json:"url"`
}

// PendingRule is a rule that requires approval of an intent, with what is still missing.
type PendingRule struct {
	ID        string   `json:"id"`
	Reason    string   `json:"reason"`
	Approvers []string `json:"approvers,omitempty"`
	Roles     []string `json:"roles,omitempty"`
	Count     int      `json:"count"`
	FourEyes  bool     `json:"four_eyes"`
	InPerson  bool     `json:"in_person,omitempty"`
	Satisfied bool     `json:"satisfied"`
}

// Vote is one person's approval.
type Vote struct {
	UserID string `json:"user_id"`
	At     string `json:"at"` // RFC 3339
}

// ApprovalURL returns the path at which the pending approval of an intent is followed.
func ApprovalURL(intentID string) string { return "/v1/approvals/" + intentID }

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
	if h.Summary != "" {
		line("does", h.Summary)
	}
	line("type", h.Type)
	if skill := h.Skill(); skill != "" {
		line("skill", skill)
	}
	line("intent", h.IntentID)
	line("asked by", h.UserID)
	if h.PlanID != "" {
		line("plan", fmt.Sprintf("%s, step %d", h.PlanID, h.Step))
	}
	for _, source := range h.HasRead {
		line("has read", source)
	}
	line("held", h.PendingSince)
	line("deadline", h.Deadline)
	h.question(&b)
	for _, r := range h.Rules {
		how := ""
		if r.InPerson {
			how = ", in person"
		}
		line("rule", fmt.Sprintf("%s: %s (%d of %s%s)", r.ID, r.Reason, r.Count, strings.Join(slices.Concat(r.Approvers, r.Roles), ", "), how))
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
