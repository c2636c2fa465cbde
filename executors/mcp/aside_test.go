package mcp

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// TestAsides: a server's messages during a call are logged as the call's, whichever way it
// comes, with control characters shown.
func TestAsides(t *testing.T) {
	for peer, src := range peers(t) {
		t.Run(peer, func(t *testing.T) {
			j := newJournal()
			c := dial(t, src, quick())
			log := slog.New(slog.NewTextHandler(j, nil)).With(slog.String("plan_id", "plan_1"), slog.Int("step", 2))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := c.Call(ctx, "talker", nil, CallMeta{Log: log})
				ended <- err
			}()
			for want, level := range map[string]string{`u001b[2J`: "WARN", "1 of 2: half of it": "INFO"} {
				line := j.wait(want)
				if !strings.Contains(line, "plan_id=plan_1 step=2") || !strings.Contains(line, "level="+level) {
					t.Errorf("logged %s", line)
				}
			}
			cancel()
			wantKind(t, <-ended, ErrUnavailable)
		})
	}
}

// TestAsidesOfSeveralCalls: progress belongs to its call; what names none belongs to the
// server while several calls are in flight.
func TestAsidesOfSeveralCalls(t *testing.T) {
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, nil))
	a := newAsides(log.With(slog.String("of", "server")), (&Settings{Secrets: []string{"hunter2-of-the-crm"}}).hider())
	first, end := a.during("ana", pendingCall{log: log.With(slog.String("of", "first"))})
	second, _ := a.during("ana", pendingCall{log: log.With(slog.String("of", "second"))})
	say := func(token, line, of string) {
		t.Helper()
		text.Reset()
		a.say(t.Context(), token, ServerMessage{Level: intents.LevelInfo, Kind: "stderr", Text: line})
		if got := text.String(); !strings.Contains(got, "of="+of+" ") || strings.Contains(got, "hunter2") {
			t.Errorf("logged %s, want it to be of %s", got, of)
		}
	}
	say(first, "x", "first")
	say(second, "x", "second")
	say("", "with hunter2-of-the-crm", "server")
	end()
	say(first, "late", "first")
	a.endedAt = a.endedAt.Add(-2 * asideLate)
	say("", "x", "second")
	say(first, "too late", "server")
}

// TestAsidesOfSeveralUsers: once a server has served two users, what names no call is of none:
// it may be about another user's.
func TestAsidesOfSeveralUsers(t *testing.T) {
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, nil))
	a := newAsides(log.With(slog.String("of", "server")), (&Settings{}).hider())
	heard := 0
	_, end := a.during("acme\x00ana", pendingCall{log: log})
	end()
	token, _ := a.during("other\x00ben", pendingCall{log: log.With(slog.String("of", "ben")), onMessage: func(ServerMessage) { heard++ }})
	for kind, want := range map[string]string{"": "server", token: "ben", "unknown": "server"} {
		text.Reset()
		a.say(t.Context(), kind, ServerMessage{Level: intents.LevelInfo, Kind: "stderr", Text: "row of ana"})
		if got := text.String(); !strings.Contains(got, "of="+want+" ") {
			t.Errorf("logged %s, want it to be of %s", got, want)
		}
	}
	if heard != 1 {
		t.Errorf("ben's call heard %d lines", heard)
	}
}
