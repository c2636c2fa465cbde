package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/sealed"
)

// skillKeyHeader has the caller's own key for skill servers with forward_api_key. It goes to the
// executor beside the intents, sealed, and nothing keeps it but memory.
const skillKeyHeader = "X-Skill-Api-Key"

// Bounds of that key, in bytes. A shorter one could not be hidden where a server repeats it.
const (
	minSkillKey = 8
	maxSkillKey = 4096
)

// secret is a text that no log shows.
type secret string

// String implements fmt.Stringer.
func (secret) String() string { return "(secret)" }

// GoString implements fmt.GoStringer.
func (secret) GoString() string { return "(secret)" }

// LogValue implements slog.LogValuer.
func (secret) LogValue() slog.Value { return slog.StringValue("(secret)") }

// skillKey reads the header. A credential of writ itself is refused: a skill server could use it.
func (g *Gateway) skillKey(c *gin.Context) (secret, error) {
	key := c.GetHeader(skillKeyHeader)
	if key == "" {
		return "", nil
	}
	if len(key) < minSkillKey || len(key) > maxSkillKey {
		return "", problem.New(intents.SchemaInvalid, "", fmt.Sprintf("the header %s must have %d to %d bytes", skillKeyHeader, minSkillKey, maxSkillKey))
	}
	hash := intents.Digest([]byte(key))
	own := key == c.GetHeader("X-Api-Key") || key == bearerOf(c) || g.cfg.People.Names(key)
	if _, known := g.foreign.Get(hash); !known && !own {
		reply, err := askRouter[bus.APIKeyReply](c.Request.Context(), g.cfg.Bus, bus.DirectoryAPIKey, bus.APIKeyRequest{Hash: hash})
		if err != nil {
			return "", err
		}
		if own = reply.Found; !own {
			g.foreign.Put(hash, "", "", 1, true)
		}
	}
	if own {
		p := problem.New(intents.SchemaInvalid, "", "the header "+skillKeyHeader+" has a credential of writ, which goes to no skill server")
		p.Hint = "send the key that the skill server has given you"
		return "", p
	}
	return secret(key), nil
}

// passSkillKey gives the key to the executors, for the calls of the actor's session.
func (g *Gateway) passSkillKey(ctx context.Context, a actor) error {
	if a.skillKey == "" {
		return nil
	}
	box, err := sealed.NewBox(g.cfg.Links.Key, catalog.CallerKeyUse)
	if err != nil {
		return err
	}
	text, err := box.Seal(catalog.CallerKey{Tenant: a.tenant, UserID: a.user, Session: a.session, Key: string(a.skillKey)})
	if err != nil {
		return err
	}
	if _, err = g.cfg.Bus.Request(ctx, bus.CallerKeys, []byte(text)); errors.Is(err, bus.ErrNoResponders) {
		return problem.New(intents.DispatchUnavailable, "", "no executor takes the key for skill servers")
	}
	return err
}
