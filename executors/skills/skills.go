// Package skills finds, describes and calls skills: tools of MCP servers whose manifests an
// operator has approved. A skill's id is <server>.<tool>. The ticket lists what may be called as
// pins {skill, digest, effect}; a manifest that differs from its pin by one character is another
// version and is not called; nor is the same tool of another server, which the digest of the pin
// covers. A server is not trusted: its input is checked before the call and its output after it, an
// answer for another user is suppressed, and a large answer becomes a file of the step, which no
// agent reads whole.
package skills

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
)

// Name of the executor.
const Name = "skills"

// Workers is how many calls run at once: most of them wait for their servers, and one may wait for a
// day.
const Workers = 512

// Server is a skill server; *mcp.Client is one. Errors are *mcp.Error.
type Server interface {
	Manifests(ctx context.Context) ([]mcp.Manifest, error)
	Call(ctx context.Context, name string, input json.RawMessage, meta mcp.CallMeta) (*mcp.Result, error)
}

var _ Server = (*mcp.Client)(nil)

// Skill is a tool of a named server.
type Skill struct {
	mcp.Manifest
	Server string
	server *server
}

// ID is <server>.<tool>.
func (s Skill) ID() string { return s.Server + "." + s.Name }

// Under reports whether a pin is for some version of this skill.
func (s Skill) Under(pin intents.Pin) bool { return pin.Skill == s.ID() }

// For reports whether a tenant sees the skill.
func (s Skill) For(tenant string) bool { return s.server.terms.serves(tenant) }

// Terms are an operator's settings for a server; the zero value sets nothing.
type Terms struct {
	Tenants []string           // tenants that see its skills; nil: all
	Calls   *ratelimit.Limiter // of its tools; nil: any number
	Renews  bool               // a new connection has new credentials
}

func (t Terms) serves(tenant string) bool {
	return t.Tenants == nil || slices.Contains(t.Tenants, tenant)
}

// Config of the executor. Log may be nil: none.
type Config struct {
	Registry *Registry
	Blobs    storage.Blobs
	Cache    *Cache // of answers; nil: one of its own
	Now      func() time.Time
	Log      *slog.Logger

	// For remote agents: their session data, and how to reach one at its endpoint.
	Workflows Workflows
	Dial      func(ctx context.Context, endpoint string) (RemoteAgent, error)

	Connections map[string]executors.Handler // of the intents about connections of users
}

// Handlers of the executor.
func Handlers(cfg Config) map[string]executors.Handler {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	s := &skills{Config: cfg, cache: cmp.Or(cfg.Cache, NewCache(cfg.Now))}
	all := map[string]executors.Handler{
		"skill.find": executors.WithArgs(s.find), "skill.load": executors.WithArgs(s.load), "skill.call": executors.WithArgs(s.call),
		"resource.read": executors.WithArgs(s.read), "cache.invalidate": executors.WithArgs(s.invalidate),
	}
	maps.Copy(all, cfg.Connections)
	return all
}

type skills struct {
	Config
	rates rates
	cache *Cache
}

// Bounds of the description of a skill in an answer, in bytes.
const (
	shortDescription = 1 << 10
	longDescription  = 16 << 10
	endpointName     = 128
	modeName         = 32
	defaultFound     = 20
)

// find returns the pinned skills, those that share words with the query first, and the others unless
// only related ones are asked for. The model decides whether one fits, because it knows that a
// customer is an account. A server that is down hides its
// skills; if none answers, the intent fails.
func (s *skills) find(ctx context.Context, o *executors.Intent, args catalog.SkillFind) (*executors.Result, error) {
	args.Limit = cmp.Or(args.Limit, defaultFound)
	live, err := s.Registry.Skills(ctx, o.Ticket.Actor)
	if err != nil && len(live) == 0 {
		return nil, unreachable(ctx, err)
	}
	if err != nil {
		s.Log.LogAttrs(ctx, slog.LevelWarn, "skill servers do not answer", slog.String("error", err.Error()))
	}
	var pinned []Skill
	ids := map[string]string{} // by digest
	for _, pin := range o.Ticket.Pins {
		ids[pin.Digest] = pin.Skill
	}
	for _, skill := range live {
		if ids[skill.Digest()] != "" && skill.Err == nil && skill.For(o.Ticket.Actor.Tenant) && skill.Name != catalog.ReadSkill {
			pinned = append(pinned, skill)
		}
	}
	hits := []catalog.SkillHit{}
	ranked, sharing := rank(pinned, args.Query)
	if !args.Related {
		sharing = len(ranked)
	}
	found, notes := s.candidates(ctx, o, ranked, sharing, args.Query)
	for _, skill := range found {
		if len(hits) < args.Limit {
			hits = append(hits, catalog.SkillHit{Name: ids[skill.Digest()], Description: visible.Cut(visible.Prose(skill.Description), shortDescription)})
		}
	}
	return &executors.Result{Value: catalog.SkillFindResult{Skills: hits, Notes: notes}}, nil
}

// load describes one or several pinned skills and names those that cannot be described now. The
// intent fails if none can be described.
func (s *skills) load(ctx context.Context, o *executors.Intent, args catalog.SkillLoad) (*executors.Result, error) {
	names := args.Skills
	if args.Skill != "" {
		names = []string{args.Skill}
	}
	var out catalog.SkillLoadResult
	var first error
	for _, name := range names {
		m, err := s.manifest(ctx, o, name)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			first, out.Unavailable = cmp.Or(first, err), append(out.Unavailable, name)
		default:
			out.Skills = append(out.Skills, m)
		}
	}
	switch {
	case len(out.Skills) == 0:
		return nil, first
	case args.Skill != "":
		return &executors.Result{Value: out.Skills[0]}, nil
	}
	return &executors.Result{Value: out}, nil
}

// manifest describes a pinned skill as it was approved.
func (s *skills) manifest(ctx context.Context, o *executors.Intent, name string) (m catalog.Manifest, err error) {
	skill, pin, err := s.approved(ctx, o, name)
	if err == nil {
		err = s.loaded(ctx, o, skill)
	}
	if err != nil {
		return m, err
	}
	return catalog.Manifest{
		Name: pin.Skill, Description: visible.Cut(visible.Prose(skill.Description), longDescription),
		InputSchema: schemas.Tolerate(skill.InputSchema).Shown, OutputSchema: shownOutput(skill.OutputSchema), ExecutionMode: visible.Line(cmp.Or(skill.ExecutionMode, "sync"), modeName),
		Endpoint: visible.Cut(serverOf(skill, pin), endpointName), Digest: pin.Digest, Effect: catalog.Effect(pin.Effect), Destructive: skill.Destroys(), WireName: pin.Name,
	}, nil
}

// shownOutput is an output schema as models read it; none if none is declared.
func shownOutput(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 || string(schema) == "null" {
		return nil
	}
	return schemas.Tolerate(schema).Shown
}

// approved finds the skill as it was approved: the pin of the ticket, and a
// live manifest with the pin's digest.
func (s *skills) approved(ctx context.Context, o *executors.Intent, name string) (Skill, intents.Pin, error) {
	i := slices.IndexFunc(o.Ticket.Pins, func(p intents.Pin) bool { return p.Skill == name || p.OfTool(name) })
	if i < 0 {
		return Skill{}, intents.Pin{}, executors.Fail(intents.PolicyDenied, "the skill is not approved for this tenant")
	}
	pin := o.Ticket.Pins[i]
	skill, found, err := s.Registry.Find(ctx, o.Ticket.Actor, pin)
	switch {
	case found && skill.Err != nil:
		return Skill{}, pin, executors.Fail(intents.ExecutorFailed, "the skill's manifest cannot be used")
	case found && skill.Digest() == pin.Digest:
		return skill, pin, nil
	case err != nil: // another server's tool under this name is not the approved one
		return Skill{}, pin, unreachable(ctx, err)
	case found:
		return Skill{}, pin, executors.Fail(intents.ExecutorFailed, "manifest changed: approve the new version")
	}
	return Skill{}, pin, executors.Fail(intents.ExecutorFailed, "no skill server has this skill any more")
}

// serverOf is the server in a skill's id, as it was when the skill was approved.
func serverOf(skill Skill, pin intents.Pin) string {
	if pin.OfTool(skill.Name) {
		return strings.TrimSuffix(pin.Skill, "."+skill.Name)
	}
	return skill.Server
}

// unreachable is the failure of an intent of which nothing was sent, so that it may be sent again.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*mcp.Error](err); ok && errors.Is(e.Kind, mcp.ErrUnconnected) {
		return connectFirst(e)
	}
	return executors.Unavailable("the skill server does not answer", err)
}
