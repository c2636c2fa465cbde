package gateway

import (
	"context"
	"log/slog"
	"time"
)

// Profiles returns a user's name and e-mail address, by that address or the id of the user;
// empty: unknown. It is called before a turn begins.
type Profiles interface {
	Profile(ctx context.Context, addressOrID string) (name, email string, err error)
}

// profileTime bounds the wait for a profile; after it the turn continues without.
const profileTime = 3 * time.Second

// The parts of a profile used by a turn, in bytes.
const (
	maxUserName  = 256
	maxUserEmail = 320
)

// profile returns the profile of a user. No turn fails for the lack of one.
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
