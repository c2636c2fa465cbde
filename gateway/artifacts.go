package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/internal/visible"
)

// Artifacts are bytes of a tenant under cas://sha256:<hex>.
type Artifacts interface {
	// Room returns ErrNoRoom or ErrQuota if that many bytes of a tenant cannot be received.
	Room(ctx context.Context, tenant string, bytes int64) error
	// Receive stores bytes separately: id names them in an intent of that turn, and nobody else
	// can use it. It returns ErrNoRoom or ErrQuota as soon as there is no more room.
	Receive(ctx context.Context, tenant, turn string, r io.Reader) (id string, err error)
	// Forget removes the bytes received in a turn.
	Forget(ctx context.Context, tenant, turn string) error
	// Fetch returns ErrNoArtifact for an artifact that does not exist or belongs to another
	// tenant.
	Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error)
	// Open returns ErrNoArtifact for a file that the tenant's step does not have any more.
	Open(ctx context.Context, tenant string, f catalog.ContentFile) (io.ReadCloser, error)
}

// Why artifacts are refused.
var (
	ErrNoArtifact = errors.New("no such artifact")                   // of this tenant
	ErrNoRoom     = errors.New("not enough free disk")               // for any tenant
	ErrQuota      = errors.New("the tenant holds as much as it may") // other tenants have room
)

// maxArtifact is the largest artifact that is accepted, in bytes; the other limits bound the time
// of an upload.
const (
	maxArtifact = 256 << 20
	uploadTime  = 10 * time.Minute
)

// uploadRoute accepts bytes of any type.
const uploadRoute = "/agent/artifacts"

// artifactReply is the answer to POST /agent/artifacts.
type artifactReply struct {
	catalog.ArtifactPutResult
	URL string `json:"url"` // can be read with an API key
}

// putArtifact is POST /agent/artifacts: it receives the body, of any type, and signs an intent
// under the user's grant that retains it. Until the intent is allowed nobody can read the bytes,
// and if it is refused they are removed. After a crash they are swept like the temporary files of
// a step.
func (g *Gateway) putArtifact(c *gin.Context) error {
	a, err := g.holder(c)
	if err != nil {
		return err
	}
	if g.cfg.Artifacts == nil {
		return problem.New(intents.DispatchUnavailable, "", "no artifacts are kept here")
	}
	if err := g.may(c.Request.Context(), a, "artifact.put"); err != nil {
		return err // before anything is received
	}
	put := catalog.ArtifactPut{Name: c.Query("name")}
	if t := c.GetHeader("Content-Type"); t != "" {
		if put.MediaType, _, err = mime.ParseMediaType(t); err != nil {
			return problem.New(intents.SchemaInvalid, "/media_type", "Content-Type is not a media type")
		}
	}
	turn := newID("turn")
	if put.From, err = g.receive(c, a.tenant, turn); err != nil {
		return err
	}
	ctx, cancel := lasting(c.Request.Context(), openTimeout)
	defer cancel()
	kept, err := g.keepReceived(ctx, a, turn, put)
	if err != nil {
		return err
	}
	at := uploadRoute + "/" + kept.Artifact[len("cas://"):]
	c.Header("Location", g.root+at)
	c.JSON(http.StatusCreated, artifactReply{kept, at})
	return nil
}

// keepReceived signs the intent that retains what was received in a turn.
func (g *Gateway) keepReceived(ctx context.Context, a actor, turn string, put catalog.ArtifactPut) (catalog.ArtifactPutResult, error) {
	kept, err := requestAt[catalog.ArtifactPutResult](ctx, g, a, "artifact.put", put, intents.Context{TurnID: turn})
	if err := g.cfg.Artifacts.Forget(ctx, a.tenant, turn); err != nil {
		g.cfg.Log.WarnContext(ctx, "an upload is left to be swept", slog.String("error", err.Error()))
	}
	return kept, err
}

// Bounds of a message that no intent can have: it is an artifact, and its plan has the beginning.
const (
	maxLong = 256 << 10
	longCut = 8 << 10
)

// keepLong keeps such a message, and returns what its plan has of it.
func (g *Gateway) keepLong(ctx context.Context, a actor, message string) (string, error) {
	if g.cfg.Artifacts == nil {
		return "", problem.New(intents.PayloadTooLarge, "", "no artifacts are kept here, so a message has at most 16384 bytes")
	}
	turn, put := newID("turn"), catalog.ArtifactPut{Name: "message.txt", MediaType: "text/plain"}
	var err error
	if put.From, err = g.cfg.Artifacts.Receive(ctx, a.tenant, turn, strings.NewReader(message)); err != nil {
		return "", noRoom(err)
	}
	kept, err := g.keepReceived(ctx, a, turn, put)
	return visible.Cut(message, longCut) + fmt.Sprintf("\n\n[This is the beginning of a message of %d bytes. The whole is the text %s: exec_python and read_lines take that as from.]", len(message), kept.Artifact), err
}

// receive streams the body to where it waits for its intent.
func (g *Gateway) receive(c *gin.Context, tenant, turn string) (id string, err error) {
	tooLarge := problem.New(intents.PayloadTooLarge, "", "an artifact has at most 256 MiB")
	if c.Request.ContentLength > maxArtifact {
		return "", tooLarge
	}
	if err := g.cfg.Artifacts.Room(c.Request.Context(), tenant, max(c.Request.ContentLength, 0)); err != nil {
		return "", noRoom(err)
	}
	if err := http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(uploadTime)); err != nil {
		return "", err
	}
	body := &bodyReader{r: http.MaxBytesReader(c.Writer, c.Request.Body, maxArtifact)}
	id, err = g.cfg.Artifacts.Receive(c.Request.Context(), tenant, turn, body)
	var over *http.MaxBytesError
	switch {
	case errors.As(body.err, &over):
		return "", tooLarge
	case body.err != nil:
		return "", problem.New(intents.SchemaInvalid, "", "the body ends early")
	}
	return id, noRoom(err)
}

// How long a client waits before it retries for lack of room: disks empty as sweeps run, quotas
// as people erase.
const (
	roomAfter  = time.Minute
	quotaAfter = 10 * time.Minute
)

// noRoom is the answer to an artifact for which there is no room.
func noRoom(err error) error {
	var p *problem.Problem
	switch {
	case errors.Is(err, ErrQuota):
		p = problem.New(intents.Overloaded, "", "the tenant holds as many bytes as it may")
		p.Hint, p.RetryAfter = "erase what is not needed any more, or have an operator raise tenant_disk_mb", quotaAfter
	case errors.Is(err, ErrNoRoom):
		p = problem.New(intents.Overloaded, "", "free disk is below the floor: no upload is accepted")
		p.RetryAfter = roomAfter
	default:
		return err
	}
	return p
}

// bodyReader records why a body could not be read, so that this is not reported as a failure of
// the store.
type bodyReader struct {
	r   io.Reader
	err error
}

func (s *bodyReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.err = err
	}
	return n, err
}

// getArtifact is GET /agent/artifacts/{digest}: by a link, or with a key, by an intent under the
// user's grant.
func (g *Gateway) getArtifact(c *gin.Context) error {
	digest := c.Param("digest")
	if c.Query("mac") != "" {
		return g.getLinked(c, digest)
	}
	a, err := g.holder(c)
	if err != nil {
		return err
	}
	if !intents.IsDigest(digest) {
		return problem.New(intents.NotFound, "", "no such artifact")
	}
	if _, err := request[catalog.ArtifactGetResult](c.Request.Context(), g, a, "artifact.get", catalog.ArtifactGet{Artifact: "cas://" + digest}, ""); err != nil {
		return err
	}
	return g.serveArtifact(c, a.tenant, digest)
}

// getLinked is getArtifact by a link, which acts for the reader that it was made for: it ends
// when that reader may no longer read artifacts, and a key sent with it must be that reader's.
func (g *Gateway) getLinked(c *gin.Context, digest string) error {
	reader, since, ok := g.cfg.Links.open(digest, c.Request.URL.Query(), g.cfg.Now())
	if !ok {
		return g.unauthorized(c, "the link is not valid, or has expired")
	}
	if err := meter(g.doors, ratelimit.Caller{Tenant: reader.tenant, Name: edge.Address(c.Request.RemoteAddr)}); err != nil {
		return err
	}
	if err := g.mayStill(c.Request.Context(), reader, "artifact.get", since); err != nil {
		return err
	}
	if c.GetHeader("X-Api-Key") != "" {
		a, err := g.holder(c)
		if err != nil {
			return err
		}
		if a.tenant != reader.tenant || a.user != reader.user {
			return problem.New(intents.RBACForbidden, "", "the link was made for somebody else: ask for the artifact without it")
		}
	}
	return g.serveArtifact(c, reader.tenant, digest)
}

// mayStill returns an error if a user may not sign a type under a grant issued at since.
func (g *Gateway) mayStill(ctx context.Context, a actor, typ string, since time.Time) error {
	row, _ := catalog.Builtin().Lookup(typ)
	reply, err := g.covered(ctx, a, row.Capability)
	if err == nil && !reply.RevokedBefore.IsZero() && !since.After(reply.RevokedBefore) {
		err = problem.New(intents.GrantInvalid, "", "the grant was revoked under which it was requested")
	}
	return err
}

// serveArtifact sends the bytes. The store checks their digest only at the end of reading, so
// they are read once before the first byte is sent.
func (g *Gateway) serveArtifact(c *gin.Context, tenant, digest string) error {
	if g.cfg.Artifacts == nil {
		return problem.New(intents.DispatchUnavailable, "", "no artifacts are kept here")
	}
	tag := `"` + digest + `"`
	c.Header("ETag", tag)
	if c.GetHeader("If-None-Match") == tag {
		c.Status(http.StatusNotModified)
		return nil
	}
	open := func() (io.ReadCloser, int64, error) {
		return g.cfg.Artifacts.Fetch(c.Request.Context(), tenant, "cas://"+digest)
	}
	r, size, err := open()
	if err == nil {
		_, err = io.Copy(io.Discard, r)
		err = errors.Join(err, r.Close())
	}
	if err == nil {
		r, size, err = open()
	}
	if errors.Is(err, ErrNoArtifact) {
		return problem.New(intents.NotFound, "", "no such artifact")
	}
	if err != nil {
		return err
	}
	defer r.Close()
	c.Header("Content-Type", "application/octet-stream") // never a type that a browser would run
	c.Header("Content-Disposition", "attachment")
	c.Header("Content-Length", strconv.FormatInt(size, 10))
	c.Status(http.StatusOK)
	_, _ = io.Copy(c.Writer, r) // a disconnected client reads nothing, and a short file breaks the connection
	return nil
}
