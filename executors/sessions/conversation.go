package sessions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// A conversation is a session as turns use it: it begins with its first turn, its oldest
// messages give way to new ones, and no turn finds it too old to go on. Only
// session.close ends it.

// Bounds of the part of a session in a prompt.
const (
	tokenBytes = 4  // bytes of text that count as a token
	crumbs     = 10 // older answers that are named
	crumbBytes = 60 // of each that are shown
)

// recent selects the messages that fit a prompt: the newest ones and before them, in an eighth of
// the room, the names of older answers: that of the moment that covers one, else its own. The
// moments come first.
func (s *session) recent(budget int, moments []message) []message {
	all := s.loaded(moments)
	room := budget * tokenBytes
	out := newest(moments, room/4)
	room -= historySize(out)
	if historySize(all) > room {
		room -= budget * tokenBytes / 8
	}
	told := newest(all, room)
	var older []message
	room = budget * tokenBytes / 8
	for i := len(all) - len(told) - 1; i >= 0 && len(older) < crumbs; i-- {
		m := all[i]
		if m.Role != catalog.SpeakerAgent {
			continue
		}
		m.Content = fmt.Sprintf("[Earlier: %s… → REM LOOKUP %s]", beginning(m), cmp.Or(s.covering(m), m.ID))
		if room -= len(m.Content); room < 0 {
			break
		}
		older = append(older, m)
	}
	slices.Reverse(older)
	return slices.Concat(out, older, told)
}

// newest messages that there is room for.
func newest(all []message, room int) []message {
	first := len(all)
	for first > 0 && len(all[first-1].Content) <= room {
		first--
		room -= len(all[first].Content)
	}
	return all[first:]
}

// loaded are the messages of a prompt, by kind, without thoughts and memories whose moment it has.
func (s *session) loaded(moments []message) []message {
	var out []message
	for _, m := range s.Messages {
		switch m.Role {
		case catalog.Memory:
			if slices.ContainsFunc(moments, func(x message) bool { return x.ID == m.Summary }) {
				continue
			}
		case catalog.Think:
			continue
		}
		out = append(out, m)
	}
	return out
}

// covering is the key of the moment that sums up a message; empty: there is none yet.
func (s *session) covering(m message) string {
	at := slices.IndexFunc(s.Messages, func(x message) bool { return x.ID == m.ID })
	for _, later := range s.Messages[at+1:] {
		if later.Role == catalog.Memory && later.TS.After(m.TS) { // a message written meanwhile is in the next moment
			return later.Summary
		}
	}
	return ""
}

// moments are the newest summaries of a session, and of the one that it goes on with,
// oldest first.
func (s *sessions) moments(ctx context.Context, o *executors.Intent, found session, n int) (out []message, sources []intents.Source, err error) {
	if n == 0 {
		return nil, nil, nil
	}
	page, err := s.docs.Search(ctx, o.Ticket.Actor.Tenant, storage.IndexMoments, storage.Query{
		Terms: map[string][]string{"user_id": {o.Ticket.Actor.UserID}, "session_id": {found.ID, found.From}, "kind": {catalog.KindChunk}}, Sort: "-created_at", Limit: n,
	})
	if err != nil {
		return nil, nil, executors.Store(err)
	}
	for _, doc := range page.Documents {
		var d struct {
			Key, Text string
			Sources   []intents.Source
		}
		if err := json.Unmarshal(doc.Body, &d); err != nil {
			return nil, nil, executors.Fail(intents.ExecutorFailed, "a stored moment cannot be read")
		}
		sources = append(sources, d.Sources...)
		out = append(out, message{ID: d.Key, Role: catalog.Memory, Content: "[Session context] " + d.Key + ": " + d.Text})
	}
	slices.Reverse(out)
	return out, sources, nil
}

// beginning of a message, in one line.
func beginning(m message) string {
	text := strings.Join(strings.Fields(m.Content), " ")
	if m.Summary != "" {
		text = m.Summary
	}
	return strings.ToValidUTF8(text[:min(len(text), crumbBytes)], "")
}

// conversation reads the session's part of the next turn's prompt. The session need not exist yet.
func (s *sessions) conversation(ctx context.Context, o *executors.Intent, args catalog.SessionRef) (*executors.Result, error) {
	found, _, err := s.load(ctx, o, args.SessionID)
	switch {
	case isUnavailable(err):
		return nil, err
	case err != nil:
		found = s.fresh(o, args.SessionID, "", 0)
	}
	moments, sources, err := s.moments(ctx, o, found, args.Moments)
	if err != nil {
		return nil, err
	}
	found.Messages = found.recent(args.TokenBudget, moments)
	view := found.view(s.time())
	view.Status = found.State // too old is not ended
	return &executors.Result{Value: view, Sources: intents.JoinSources(found.Sources, sources)}, nil
}

// appendOnce adds the first turns sent under a key and returns the stored ones. A message of the
// user belongs to its turn, whatever the key is. After a crash before the rows are written the
// session has the turns: the repeated intent writes their rows.
func (s *sessions) appendOnce(ctx context.Context, o *executors.Intent, args catalog.SessionAppend) (*executors.Result, error) {
	turns := messages(o, args.Turns)
	for i := range turns {
		by := args.Key
		if turns[i].Role == catalog.SpeakerUser {
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
		if args.Turns[0].Role == catalog.SpeakerUser {
			found.Summary = args.Summary
		}
		for len(found.Messages) > s.turns || historySize(found.Messages) > MaxHistory {
			found.Messages = found.Messages[1:]
		}
		s.touch(found, s.time())
		return nil
	}
	_, err := s.change(ctx, o, args.SessionID, add)
	if err != nil && !isUnavailable(err) {
		fresh := s.fresh(o, args.SessionID, "", 0)
		if err = add(&fresh); err == nil {
			_, err = s.begin(ctx, o, fresh)
		}
		if err != nil { // begun by another intent, or another user's
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
	return stands.result(s.time()), s.writeRows(ctx, o, args, stands.Messages)
}
