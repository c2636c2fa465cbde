package sessions

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// A conversation is a session as turns use it: it begins with its first turn, its oldest
// messages give way to new ones, and no turn finds it too old to go on. Only
// session.close ends it.

// What a prompt takes from a session.
const (
	tokenBytes = 4  // bytes of text that count as a token
	crumbs     = 10 // older answers that are named
	crumbBytes = 60 // of each that are shown
)

// recent is what a prompt has room for: the newest messages, and before them, in an
// eighth of the room, the names under which older answers are found.
func (s *session) recent(budget int) []message {
	room := budget * tokenBytes
	if historySize(s.Messages) > room {
		room -= room / 8
	}
	first := len(s.Messages)
	for first > 0 && len(s.Messages[first-1].Content) <= room {
		first--
		room -= len(s.Messages[first].Content)
	}
	var out []message
	room = budget * tokenBytes / 8
	for i := first - 1; i >= 0 && len(out) < crumbs; i-- {
		m := s.Messages[i]
		if m.Role != catalog.SaidByAgent {
			continue
		}
		m.Content = fmt.Sprintf("[Earlier: %s… → REM LOOKUP %s]", beginning(m), m.ID)
		if room -= len(m.Content); room < 0 {
			break
		}
		out = append(out, m)
	}
	slices.Reverse(out)
	return append(out, s.Messages[first:]...)
}

// beginning of a message, in one line.
func beginning(m message) string {
	text := strings.Join(strings.Fields(m.Content), " ")
	if m.Summary != "" {
		text = m.Summary
	}
	return strings.ToValidUTF8(text[:min(len(text), crumbBytes)], "")
}

// conversation reads what the prompt of the next turn takes. There need be no session yet.
func (s *sessions) conversation(ctx context.Context, o *executors.Order, args catalog.SessionRef) (*executors.Result, error) {
	found, _, err := s.load(ctx, o, args.SessionID)
	switch {
	case isUnavailable(err):
		return nil, err
	case err != nil:
		found = s.fresh(o, args.SessionID, "", 0)
	}
	found.Messages = found.recent(args.TokenBudget)
	view := found.view(s.time())
	view.Status = found.State // too old is not ended
	return &executors.Result{Value: view}, nil
}

// appendOnce adds the turns of a key, the first that come under it, and answers with
// those that stand. A message of the user is of its turn, whatever the key is. A crash
// before the rows are written leaves the session with the turns: the order that comes
// again writes the rows of what stands.
func (s *sessions) appendOnce(ctx context.Context, o *executors.Order, args catalog.SessionAppend) (*executors.Result, error) {
	turns := messages(o, args.Turns)
	for i := range turns {
		by := args.Key
		if turns[i].Role != catalog.SaidByAgent {
			by = o.Context.TurnID
		}
		sum := sha256.Sum256([]byte(o.Ticket.Actor.UserID + "\n" + args.SessionID + "\n" + turns[i].Role + "\n" + by))
		turns[i].ID = fmt.Sprintf("m_%x_%d", sum[:16], i)
	}
	add := func(found *session) error {
		missing := slices.DeleteFunc(slices.Clone(turns), func(m message) bool { return found.has([]message{m}) })
		switch {
		case len(missing) == 0:
			return errApplied
		case found.State != active:
			return executors.Fail(intents.MalformedArgs, "the session has ended: resume it under a new id")
		}
		found.Messages = append(found.Messages, missing...)
		found.Did = args.Did
		for len(found.Messages) > MaxTurns || historySize(found.Messages) > MaxHistory {
			found.Messages = found.Messages[1:]
		}
		found.touch(s.time())
		return nil
	}
	_, err := s.change(ctx, o, args.SessionID, add)
	if err != nil && !isUnavailable(err) {
		fresh := s.fresh(o, args.SessionID, "", 0)
		if err = add(&fresh); err == nil {
			_, err = s.begin(ctx, o, fresh)
		}
		if err != nil { // begun by another order, or another user's
			_, err = s.change(ctx, o, args.SessionID, add)
		}
	}
	if err != nil {
		return nil, err
	}
	stands, _, err := s.load(ctx, o, args.SessionID)
	if err != nil {
		return nil, err
	}
	stands.Messages = slices.DeleteFunc(stands.Messages, func(m message) bool {
		return !slices.ContainsFunc(turns, func(t message) bool { return t.ID == m.ID })
	})
	return &executors.Result{Value: stands.view(s.time())}, s.writeRows(ctx, o, args.SessionID, stands.Messages)
}
