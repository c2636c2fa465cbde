package gateway

import (
	"context"
	"log/slog"
	"time"
)

// Profiles says what a user is called, and the user's e-mail address, by that address or the
// id of the user; empty: nothing is known. It is asked before a turn begins.
type Profiles interface {
	Profile(ctx context.Context, addressOrID string) (name, email string, err error)
}

// profileTime bounds the wait for a profile: the turn does without it then.
const profileTime = 3 * time.Second

// What a turn takes of a profile, in bytes.
const (
	maxUserName  = 256
	maxUserEmail = 320
)

// profile of a user. No turn fails for the lack of one.
func (g *Gateway) profile(ctx context.Context, user string) (name, email string) {
	ctx, cancel := context.WithTimeout(ctx, profileTime)
	defer cancel()
	name, email, err := g.cfg.Profiles.Profile(ctx, user)
	if err != nil {
		g.cfg.Log.WarnContext(ctx, "a user's profile is not known", slog.String("error", err.Error()))
		return "", ""
	}
	if len(name) > maxUserName || len(email) > maxUserEmail {
		return "", ""
	}
	return name, email
}
