package cli

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/visible"
)

func chatCommand(c *command) {
	c.personFlags()
	c.skillKeyFlag()
	session := c.Flags().String("session", "", "continue this session (default: a new one)")
	agent := c.agentFlag("agent to talk with")
	debug := c.Flags().Bool("debug", false, "print each request to a model's server to standard error, as the JSON that is sent; the node must have been started with writ up --debug")
	c.run = func([]string) error {
		to, err := c.client()
		if err != nil {
			return err
		}
		to.Agent = *agent
		if *session == "" {
			*session = newChat()
		}
		fmt.Fprintf(c.std.Err, "session %s; Ctrl-D ends\n", *session)
		lines := c.lines()
		for {
			text, more := c.prompt(lines, "> ")
			if !more {
				return nil
			}
			if strings.TrimSpace(text) == "" {
				continue
			}
			var refused *client.Error
			closed, err := c.say(to, lines, *session, text, *debug)
			if errors.As(err, &refused) {
				fmt.Fprintln(c.std.Err, "writ:", printable(err.Error()))
				c.notHere(refused)
			} else if err != nil {
				return err
			}
			if closed {
				*session = newChat()
				fmt.Fprintf(c.std.Err, "the agent is done, and its session closed; the next line begins session %s\n", *session)
			}
		}
	}
}

// notHere reports that an agent is missing here but present in a directory configured for writ up.
func (c *command) notHere(refused *client.Error) {
	if dir := c.std.Env("P8_SCHEMA_DIR"); dir != "" && refused.Code == intents.NotFound {
		fmt.Fprintf(c.std.Err, "P8_SCHEMA_DIR is for writ up, which was not started with it: an agent acts for its users once an operator has put it in force: writ registry push %s\n", printable(dir))
	}
}

func newChat() string { return "chat_" + strings.ToLower(rand.Text()) }

// lines are those of the input, as they come. Reading does not end with the context of the
// command, so that is done aside.
func (c *command) lines() <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		in := bufio.NewScanner(c.std.In)
		for in.Scan() {
			out <- in.Text()
		}
	}()
	return out
}

// prompt asks for a line; false: there are no more, or the user leaves.
func (c *command) prompt(lines <-chan string, ask string) (string, bool) {
	fmt.Fprint(c.std.Err, painter(c.std, c.std.Err).bold(ask))
	select {
	case line, more := <-lines:
		return line, more
	case <-c.Context().Done():
		return "", false
	}
}

// say runs one turn of a conversation: it streams its text, prints its data as a table, and asks
// about the intents pending this person's approval, one after the other. closed reports that the
// turn has closed its session.
func (c *command) say(to client.Client, lines <-chan string, session, text string, debug bool) (closed bool, err error) {
	t := c.newTurn("")
	t.stream()
	shown := !debug
	if debug {
		t.Sent = func(body json.RawMessage) {
			shown = true
			fmt.Fprintf(c.std.Err, "%s\n", visible.ProseJSON(body))
		}
	}
	t.PlanID, err = to.Chat(c.Context(), session, text, t.Take)
	for err == nil {
		var left *exitError
		if err := t.end(c.Context(), to); err != nil && !errors.As(err, &left) {
			return false, err
		}
		if t.Status != "held" {
			if !strings.Contains(t.Response, "\n|") { // the answer has no table
				_, err = io.WriteString(c.std.Out, dataTable(t.Data))
			}
			if !shown {
				fmt.Fprintln(c.std.Err, "no request to a model was shown: the node shows them if it was started with writ up --debug")
			}
			return t.WorkflowComplete, err
		}
		if goesOn, err := c.approve(lines, &t); !goesOn || err != nil {
			return false, err
		}
		last := t.Last
		t.Turn, t.printed = client.Turn{PlanID: t.PlanID, Progress: t.Progress, Tokens: t.Tokens, ChildContent: t.ChildContent, Sent: t.Sent}, ""
		err = to.Watch(c.Context(), t.PlanID, last, t.Take)
	}
	return false, t.broken(c.Context(), err)
}

// approve asks the person about the intent that a turn waits for, if it is theirs to decide.
func (c *command) approve(lines <-chan string, t *turnView) (goesOn bool, err error) {
	var held bus.PendingApprovalData
	var intent bus.PendingApproval
	if json.Unmarshal(t.Data, &held) != nil || c.get(approvalsPath+"/"+url.PathEscape(held.Approval.IntentID), &intent) != nil || !intent.MayDecide {
		return false, nil //nolint:nilerr // who cannot decide here was told how to follow the plan
	}
	fmt.Fprint(c.std.Err, intent.Text())
	said, decided := c.promptDecision(lines, intent)
	if !decided {
		return false, nil
	}
	result, err := c.decide(said)
	if err != nil {
		return false, err
	}
	fmt.Fprint(c.std.Err, render("decided", result), nextOf(result))
	return result.State != catalog.ApprovalPending, nil
}

// promptDecision is the person's decision on an intent. Without one it stays pending.
func (c *command) promptDecision(lines <-chan string, intent bus.PendingApproval) (said catalog.Approve, decided bool) {
	said.IntentID = intent.IntentID
	word := func(ask string) string {
		text, _ := c.prompt(lines, ask)
		return strings.TrimSpace(text)
	}
	switch strings.ToLower(word("approve? [y]es, [e]dit, request [c]hanges, [r]eject; enter leaves it waiting: ")) {
	case "y", "yes":
		said.Decision = catalog.DecisionApprove
		var a catalog.ApprovalAsk
		if intent.Type == "approval.ask" && json.Unmarshal(intent.Args, &a) == nil && len(a.Items) > 0 {
			said.Items = strings.Fields(word("which items? enter is all: "))
		}
		return said, true
	case "e", "edit":
		said.Decision, said.Args = catalog.DecisionEdit, json.RawMessage(word("arguments, as JSON in one line: "))
		if !json.Valid(said.Args) {
			fmt.Fprintln(c.std.Err, "writ: that is no JSON; the intent waits")
			return said, false
		}
		return said, true
	case "c", "changes":
		said.Decision, said.Reason = catalog.DecisionRequestChanges, word("what should change? ")
	case "r", "reject":
		said.Decision, said.Reason = catalog.DecisionReject, word("why? ")
	}
	return said, said.Reason != ""
}

// stream shows the text of a turn as it arrives. Other messages begin a new line.
func (t *turnView) stream() {
	amid := false // a line of the text
	status, asked := t.Progress, t.ChildContent
	begin := func() {
		if amid {
			fmt.Fprintln(t.std.Err)
		}
		amid = false
	}
	t.Progress = func(s bus.StatusData) { begin(); status(s) }
	t.ChildContent = func(d bus.ContentData) { begin(); asked(d) }
	t.Tokens = func(d bus.ContentData) {
		text := printable(d.Text)
		if d.Reset {
			text = "\n"
			t.printed = ""
		}
		t.printed += d.Text
		fmt.Fprint(t.std.Out, text)
		amid = text != "" && !strings.HasSuffix(text, "\n")
	}
}

// dataTable shows rows of plain values; empty: the data is nothing of the kind.
func dataTable(data json.RawMessage) string {
	var rows []map[string]any
	if json.Unmarshal(data, &rows) != nil || len(rows) == 0 {
		return ""
	}
	names, head := slices.Sorted(maps.Keys(rows[0])), map[string]any{}
	for _, name := range names {
		head[name] = name
	}
	return aligned(func(w io.Writer) {
		for _, row := range append([]map[string]any{head}, rows...) {
			for _, name := range names {
				fmt.Fprint(w, oneLine(fmt.Sprint(row[name]), 40)+"\t")
			}
			fmt.Fprintln(w)
		}
	})
}
