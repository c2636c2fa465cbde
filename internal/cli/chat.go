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

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/client"
)

func chatCommand(c *command) {
	c.personFlags()
	session := c.Flags().String("session", "", "continue this session (default: a new one)")
	agent := c.Flags().String("agent", "", "agent to talk with (default: run_agent of the configuration, else the planner)")
	c.run = func([]string) error {
		to, err := c.client()
		if err != nil {
			return err
		}
		to.Agent = *agent
		if *session == "" {
			*session = "chat_" + strings.ToLower(rand.Text())
		}
		if dir := c.std.Env("P8_SCHEMA_DIR"); dir != "" {
			fmt.Fprintf(c.std.Err, "P8_SCHEMA_DIR is for writ up: agents of %s are not read here; to have them in force, writ registry push %s\n", printable(dir), printable(dir))
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
			if err := c.say(to, lines, *session, text); errors.As(err, &refused) {
				fmt.Fprintln(c.std.Err, "writ:", printable(err.Error()))
			} else if err != nil {
				return err
			}
		}
	}
}

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

// say has one turn of a conversation: its text while it comes, its data as a table, and
// the orders that wait for this person, one after the other.
func (c *command) say(to client.Client, lines <-chan string, session, text string) error {
	t := c.newTurn("")
	t.stream()
	var err error
	t.PlanID, err = to.Chat(c.Context(), session, text, t.Take)
	for err == nil {
		var left *exitError
		if err := t.end(c.Context(), to); err != nil && !errors.As(err, &left) {
			return err
		}
		if t.Status != "held" {
			if !strings.Contains(t.Response, "\n|") { // the answer has no table
				_, err = io.WriteString(c.std.Out, dataTable(t.Data))
			}
			return err
		}
		if goesOn, err := c.approve(lines, &t); !goesOn || err != nil {
			return err
		}
		last := t.Last
		t.Turn, t.said = client.Turn{PlanID: t.PlanID, Progress: t.Progress, Tokens: t.Tokens, Asked: t.Asked}, ""
		err = to.Watch(c.Context(), t.PlanID, last, t.Take)
	}
	return t.broken(c.Context(), err)
}

// approve asks the person about the order that a turn waits for, if it is theirs to decide.
func (c *command) approve(lines <-chan string, t *turnView) (goesOn bool, err error) {
	var held bus.HeldData
	var order bus.HeldOrder
	if json.Unmarshal(t.Data, &held) != nil || c.get("/agent/approvals/"+url.PathEscape(held.Approval.IntentID), &order) != nil || !order.MayDecide {
		return false, nil //nolint:nilerr // who cannot decide here was told how to follow the plan
	}
	fmt.Fprint(c.std.Err, order.Text())
	said, decided := c.asked(lines, order)
	if !decided {
		return false, nil
	}
	result, err := c.decide(said)
	if err != nil {
		return false, err
	}
	fmt.Fprint(c.std.Err, decidedText(result), nextOf(result))
	return result.State != catalog.ApprovalHeld, nil
}

// asked is what the person says of an order. Whoever says nothing leaves it waiting.
func (c *command) asked(lines <-chan string, order bus.HeldOrder) (said catalog.Approve, decided bool) {
	said.IntentID = order.IntentID
	word := func(ask string) string {
		text, _ := c.prompt(lines, ask)
		return strings.TrimSpace(text)
	}
	switch strings.ToLower(word("approve? [y]es, [e]dit, request [c]hanges, [r]eject; enter leaves it waiting: ")) {
	case "y", "yes":
		said.Decision = catalog.DecisionApprove
		var a catalog.ApprovalAsk
		if order.Type == "approval.ask" && json.Unmarshal(order.Args, &a) == nil && len(a.Items) > 0 {
			said.Items = strings.Fields(word("which items? enter is all: "))
		}
		return said, true
	case "e", "edit":
		said.Decision, said.Args = catalog.DecisionEdit, json.RawMessage(word("arguments, as JSON in one line: "))
		if !json.Valid(said.Args) {
			fmt.Fprintln(c.std.Err, "writ: that is no JSON; the order waits")
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

// stream shows the text of a turn while it comes. What else is told of it begins a line.
func (t *turnView) stream() {
	amid := false // a line of the text
	status, asked := t.Progress, t.Asked
	begin := func() {
		if amid {
			fmt.Fprintln(t.std.Err)
		}
		amid = false
	}
	t.Progress = func(s bus.StatusData) { begin(); status(s) }
	t.Asked = func(d bus.ContentData) { begin(); asked(d) }
	t.Tokens = func(d bus.ContentData) {
		text := printable(d.Text)
		if d.Reset {
			text = "\n"
			t.said = ""
		}
		t.said += d.Text
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
