package console

import (
	"fmt"
	"testing"
	"time"

	"aob.dev/writ/internal/ratelimit"
)

// TestSessionShares: every login gets a session. A key that logs in repeatedly ends its own
// sessions, and not those of others.
func TestSessionShares(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	s := &Console{sessions: ratelimit.NewRecent[*session](shares, sessionLife, func() time.Time { return now })}
	other := s.begin(&session{credentials: credentials{key: "theirs"}, Tenant: "b"})
	var last string
	for i := range 3 * shares.Key {
		now = now.Add(time.Second)
		last = s.begin(&session{credentials: credentials{key: "mine", user: fmt.Sprint(i)}, Tenant: "a"})
	}
	for _, token := range []string{other, last} {
		if _, ok := s.find(token); !ok {
			t.Error("a session is gone")
		}
	}
	if s.sessions.Len() != shares.Key+1 {
		t.Errorf("%d sessions", s.sessions.Len())
	}
}
