package skills

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
)

// answer makes the result from the skill's answer. It removes the envelope first, so that nothing
// reads an answer for another user, or one of another type. An answer with files is not cached,
// because the files belong to the step; nor is an envelope, which is for one user, in a cache that
// all share.
func (s *skills) answer(ctx context.Context, in invocation, res *mcp.Result, key string) (*executors.Result, error) {
	content := executors.Content{Text: res.Text, Structured: res.Structured}
	envelope, err := in.skill.Unwrap(res.Data, in.intent.Ticket.Actor.UserID, res.Proof)
	switch {
	case err != nil:
		return nil, s.failure(ctx, in, res, err)
	case envelope != nil:
		res.Odd = append(res.Odd, envelope.Odd...)
	case !res.IsJSON:
	case intents.Unambiguous(res.Data) == nil:
		content.JSON = res.Data
	default:
		content.Text = string(res.Data)
		res.Odd = append(res.Odd, "its JSON can be read in two ways, and is given as a text")
	}
	if envelope != nil {
		log := s.Log.With(slog.String("skill", in.pin.Skill), slog.String("intent_id", in.intent.ID), slog.String("trace_id", in.intent.TraceID),
			slog.String("domain_type", envelope.DomainType), slog.String("enricher_id", envelope.EnricherID), slog.String("version", envelope.Version))
		log.LogAttrs(ctx, slog.LevelDebug, "enricher response", slog.String("cache_meta", string(envelope.CacheMeta)))
		if event, why := mistyped(ctx, in, envelope); event != nil {
			log.LogAttrs(ctx, slog.LevelWarn, "an enricher response is not shown: declare its type under enrichers of an agent, or mend its server", slog.String("reason", why))
			f := executors.Fail(intents.ExecutorFailed, "data unavailable")
			f.Events = []intents.ReportedEvent{*event, called(in, len(res.Data), false)}
			in.unknown(f)
			return nil, f
		}
		if content = (executors.Content{JSON: envelope.Payload}); envelope.Partial {
			content.Status = catalog.Partial
		}
	}
	size := len(res.Data)
	for _, f := range res.Files {
		size += len(f.Data)
	}
	var stored []storage.File
	if len(res.Files) > 0 {
		if in.intent.Redacts() && slices.ContainsFunc(res.Files, func(f mcp.File) bool { return f.Type != "link" }) {
			return nil, s.lost(in, []intents.ReportedEvent{called(in, size, false)}, executors.Unredacted())
		}
		if content, stored, err = s.withFiles(ctx, in, content, res.Files); err != nil {
			return nil, s.lost(in, []intents.ReportedEvent{called(in, size, false)}, err)
		}
	}
	if envelope == nil {
		if content.Parts, err = s.content(ctx, in, res.Parts, stored); err != nil {
			return nil, s.lost(in, []intents.ReportedEvent{called(in, size, false)}, err)
		}
	}
	if len(res.Odd) > 0 {
		if content, err = incomplete(content, res.Odd); err != nil {
			return nil, s.lost(in, []intents.ReportedEvent{called(in, size, false)}, err)
		}
	}
	if key != "" && len(res.Files) == 0 && len(res.Odd) == 0 && (envelope == nil || !in.pin.Shared) {
		s.cache.keep(key, in.kept(key, content, s.Now()), in.swept)
	}
	out, err := s.result(ctx, in, content, []intents.ReportedEvent{called(in, size, content.Large())})
	if err == nil && in.intent.Ticket.Scope != nil && in.intent.Unobliged() {
		out.Images = images(res.Files, stored)
	}
	return out, err
}

// shownTypes are the images that models take.
var shownTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// images are those of an answer that models may take, by their bytes.
func images(files []mcp.File, stored []storage.File) (out []intents.Image) {
	for i, f := range files {
		if kind := http.DetectContentType(f.Data); slices.Contains(shownTypes, kind) {
			out = append(out, intents.Image{MIMEType: kind, FileID: stored[i].ID, Data: f.Data})
		}
	}
	return out
}

// incomplete adds to a partial answer what was dropped or does not match. Clients that check
// results by the tool's schema recognise the status as an answer of writ's own.
func incomplete(c executors.Content, odd []string) (executors.Content, error) {
	out := struct {
		Status string   `json:"status"`
		Result any      `json:"result,omitempty"`
		Text   string   `json:"text,omitempty"` // beside a result that is not made from it
		Odd    []string `json:"odd"`
	}{Status: catalog.Incomplete, Odd: odd}
	switch {
	case len(c.JSON) > 0:
		out.Result = c.JSON
		if strings.TrimSpace(c.Text) != string(bytes.TrimSpace(c.JSON)) {
			out.Text = c.Text
		}
	case c.Text != "":
		out.Result = c.Text
	}
	raw, err := intents.MarshalPlain(out)
	return executors.Content{JSON: raw, Parts: c.Parts, Status: c.Status}, err
}

// kept is the answer as it is cached.
func (in invocation) kept(key string, content executors.Content, at time.Time) cachedAnswer {
	t := in.intent.Ticket
	if content.Large() || len(content.Text) >= storage.InlineLimit {
		content.Parts = nil // they name files of this step
	}
	k := cachedAnswer{content: content, position: t.Position, at: at, name: in.pin.Skill + ":" + key, tenant: t.Actor.Tenant, user: t.Actor.UserID, plan: in.intent.Context.PlanID}
	if in.pin.Shared {
		k.user = ""
	}
	return k
}

// result puts large content into a file of the step.
func (s *skills) result(ctx context.Context, in invocation, content executors.Content, events []intents.ReportedEvent) (*executors.Result, error) {
	output, ref, err := s.inlineOrFile(ctx, in, content)
	if err != nil {
		return nil, s.lost(in, events, err)
	}
	if ref != nil {
		events = append(events, executors.NewEvent("large_response.detected", map[string]any{
			"file_id": ref.FileID, "size_bytes": ref.SizeBytes, "threshold_bytes": storage.InlineLimit, "strategy": "python_extract",
		}))
	}
	return &executors.Result{Value: catalog.SkillCallResult{Output: output, Reference: ref, Status: content.Status, Content: content.Parts, Structured: content.Structured && content.Parts != nil}, Events: events}, nil
}

func (s *skills) inlineOrFile(ctx context.Context, in invocation, c executors.Content) (json.RawMessage, *catalog.Reference, error) {
	scope, err := in.intent.Scope()
	if err != nil && c.Large() {
		return nil, nil, err
	}
	return executors.InlineOrFile(ctx, in.intent, s.Blobs, scope, c)
}

// called is the event of every invocation.
func called(in invocation, responseSize int, large bool) intents.ReportedEvent {
	return executors.NewEvent("skill.called", map[string]any{
		"skill_id": in.pin.Skill, "input_size_bytes": len(in.input), "response_size_bytes": responseSize,
		"duration_ms": in.took.Milliseconds(), "large_response_triggered": large,
	})
}

// mistyped checks a payload against the types that the tenant's agents declare, by domain type and
// enricher. Another minor version is the same type; the payload must match all of several with one
// major version. If no agent declares a type, only the approved output schema counts. event is nil
// for a payload that may be shown; why is for operators.
func mistyped(ctx context.Context, in invocation, e *mcp.Envelope) (event *intents.ReportedEvent, why string) {
	types := in.intent.Ticket.Types
	if len(types) == 0 {
		return nil, ""
	}
	about := map[string]any{"skill_id": in.pin.Skill}
	wrongType, wrongVersion := executors.NewEvent("envelope.type_mismatch", about), executors.NewEvent("envelope.version_mismatch", about)
	event, why = &wrongType, "no agent declares this type"
	for _, t := range types {
		if t.DomainType != e.DomainType || t.EnricherID != e.EnricherID {
			continue
		}
		if major := semver.Major("v" + e.Version); major == "" || major != semver.Major("v"+t.Version) {
			if event != nil {
				event, why = &wrongVersion, "agents declare version "+t.Version
			}
			continue
		}
		schema, err := schemas.Compile(t.Schema)
		if err != nil {
			return &wrongType, "its schema cannot be used: " + err.Error()
		}
		if found := schema.ValidateWithin(ctx, e.Payload); len(found) > 0 {
			return &wrongType, "the payload does not match its schema at " + found[0].Pointer + ": " + found[0].Reason
		}
		event, why = nil, ""
	}
	return event, why
}

// fileRef refers to an image or another file of an answer, stored as a temporary file of the step:
// no prompt contains its bytes. A link has only a URI.
type fileRef struct {
	Type     string `json:"type"`
	MIMEType string `json:"mime_type"`
	Name     string `json:"name,omitempty"`
	URI      string `json:"uri,omitempty"`
	FileID   string `json:"file_id,omitempty"`
	Size     int64  `json:"size_bytes,omitempty"`
	SHA256   string `json:"sha256,omitempty"`
}

// withFiles stores the files of an answer and adds references to them to the answer. A crash leaves
// files of the step, which are removed with it.
func (s *skills) withFiles(ctx context.Context, in invocation, c executors.Content, files []mcp.File) (executors.Content, []storage.File, error) {
	var all []storage.File // by the number of the file
	var out struct {
		Result any       `json:"result,omitempty"`
		Files  []fileRef `json:"files"`
	}
	switch {
	case len(c.JSON) > 0:
		out.Result = c.JSON
	case c.Text != "":
		out.Result = c.Text
	}
	for _, f := range files {
		ref := fileRef{Type: f.Type, MIMEType: f.MIMEType, Name: f.Name, URI: f.URI}
		var stored storage.File
		if f.Type != "link" {
			scope, err := in.intent.Scope()
			if err != nil {
				return c, nil, err
			}
			if stored, err = s.Blobs.Put(ctx, scope, bytes.NewReader(f.Data)); err != nil {
				return c, nil, executors.Store(err)
			}
			ref.FileID, ref.Size, ref.SHA256 = stored.ID, stored.Size, stored.SHA256
		}
		out.Files, all = append(out.Files, ref), append(all, stored)
	}
	raw, err := json.Marshal(out)
	return executors.Content{JSON: raw, Structured: c.Structured}, all, err
}
