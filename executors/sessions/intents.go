package sessions

import (
	"context"
	"slices"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// get reads a session with its whole history, or with a page of it: the newest turns
// before a cursor, oldest first.
func (s *sessions) get(ctx context.Context, o *executors.Intent, args catalog.SessionRef) (*executors.Result, error) {
	if args.TokenBudget > 0 {
		return s.conversation(ctx, o, args)
	}
	found, _, err := s.load(ctx, o, args.SessionID)
	if err != nil {
		return nil, err
	}
	older, err := found.page(args.Before, args.Limit)
	if err != nil {
		return nil, err
	}
	view := found.view(s.time())
	view.Cursor = older
	return &executors.Result{Value: view, Sources: found.Sources}, nil
}

// page reduces the session to the newest turns before a cursor. It returns the cursor
// of the older ones; empty: there are none.
func (s *session) page(before string, limit int) (older string, err error) {
	if before != "" {
		end := slices.IndexFunc(s.Messages, func(m message) bool { return m.ID == before })
		if end < 0 {
			return "", executors.Fail(intents.MalformedArgs, "before is no cursor of this session")
		}
		s.Messages = s.Messages[:end]
	}
	if limit <= 0 || limit >= len(s.Messages) {
		return "", nil
	}
	s.Messages = s.Messages[len(s.Messages)-limit:]
	return s.Messages[0].ID, nil
}

// create begins an active session with a time to live.
func (s *sessions) create(ctx context.Context, o *executors.Intent, args catalog.SessionCreate) (*executors.Result, error) {
	return s.begin(ctx, o, s.fresh(o, args.SessionID, args.Agent, args.TTLMinutes))
}

func (s *sessions) fresh(o *executors.Intent, id, agent string, ttlMinutes int) session {
	now := s.time()
	fresh := session{
		ID: id, Tenant: o.Ticket.Actor.Tenant, User: o.Ticket.Actor.UserID, State: active, StartedAt: now,
		Messages: []message{}, TTLMinutes: ttlMinutes, Agent: agent,
	}
	s.touch(&fresh, now)
	return fresh
}

// append adds turns, all or none, and restarts the time to live. A full session takes
// no more turns: it is resumed under a new id. The rows of the turns are written after
// the session; success means that both are written.
func (s *sessions) append(ctx context.Context, o *executors.Intent, args catalog.SessionAppend) (*executors.Result, error) {
	if args.Key != "" {
		return s.appendOnce(ctx, o, args)
	}
	turns := messages(o, args.Turns)
	result, err := s.change(ctx, o, args.SessionID, func(found *session) error {
		if found.has(turns) {
			return errApplied
		}
		if err := s.mustLive(*found); err != nil {
			return err
		}
		found.Messages = append(found.Messages, turns...)
		if len(found.Messages) > s.turns || historySize(found.Messages) > MaxHistory {
			return executors.Fail(intents.MalformedArgs, "the session is full: resume it under a new id")
		}
		s.touch(found, s.time())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return result, s.writeRows(ctx, o, args, turns)
}

func historySize(messages []message) int {
	size := 0
	for _, m := range messages {
		size += len(m.Content)
	}
	return size
}

// update replaces the workflow state, which is opaque.
func (s *sessions) update(ctx context.Context, o *executors.Intent, args catalog.SessionUpdate) (*executors.Result, error) {
	return s.change(ctx, o, args.SessionID, func(found *session) error {
		if err := s.mustLive(*found); err != nil {
			return err
		}
		found.Workflow = args.WorkflowState
		s.touch(found, s.time())
		return nil
	})
}

// close ends a session and removes its time to live, so that it is not deleted. A
// session is closed once; closing it again with the same status changes nothing.
func (s *sessions) close(ctx context.Context, o *executors.Intent, args catalog.SessionClose) (*executors.Result, error) {
	return s.change(ctx, o, args.SessionID, func(found *session) error {
		if found.State == args.Status {
			return errApplied
		}
		if found.State != active {
			return executors.Fail(intents.MalformedArgs, "the session has ended")
		}
		found.State, found.TTLAt, found.LastActive = args.Status, nil, s.time()
		return nil
	})
}

// resume begins a new session with the history of one that has ended. Of a full one it
// takes the newest half, so that there is room for new turns.
func (s *sessions) resume(ctx context.Context, o *executors.Intent, args catalog.SessionResume) (*executors.Result, error) {
	prior, _, err := s.load(ctx, o, args.From)
	if err != nil {
		return nil, err
	}
	full := len(prior.Messages) > s.turns*9/10 || historySize(prior.Messages) > MaxHistory/2
	if prior.live(s.time()) && !full {
		return nil, executors.Fail(intents.MalformedArgs, "the session has not ended: append to it")
	}
	fresh := s.fresh(o, args.SessionID, prior.Agent, prior.TTLMinutes)
	fresh.From, fresh.Workflow, fresh.Sources = prior.ID, prior.Workflow, prior.Sources
	fresh.Messages = prior.Messages
	if full {
		fresh.Messages = slices.Clone(prior.Messages[max(0, len(prior.Messages)-s.turns/2):])
	}
	for len(fresh.Messages) > 1 && historySize(fresh.Messages) > MaxHistory/2 {
		fresh.Messages = fresh.Messages[1:]
	}
	return s.begin(ctx, o, fresh)
}

func (s *sessions) mustLive(found session) error {
	if !found.live(s.time()) {
		return executors.Fail(intents.MalformedArgs, "the session has ended: resume it under a new id")
	}
	return nil
}
