package skills

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/tracing"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
)

// MaxInput bounds the input of a call in bytes.
const MaxInput = 4 << 20

// invocation is one call of a skill.
type invocation struct {
	intent *executors.Intent
	skill  Skill
	pin    intents.Pin
	input  json.RawMessage
	took   time.Duration
	swept  int // how often answers had been forgotten when it began
}

// call calls a pinned skill. The server gets the intent_id, so that it can recognise a repeated
// intent. The call is repeated only if the pin allows the skill to run more than once.
func (s *skills) call(ctx context.Context, o *executors.Intent, args catalog.SkillCall) (*executors.Result, error) {
	if t := o.Ticket.Scope; t != nil && !slices.Contains(t.Skills, args.Skill) {
		return nil, executors.Fail(intents.TaskScope, "the step does not include the skill")
	}
	if pin, ok := agentPin(o, args.Skill); ok {
		return s.message(ctx, o, pin, args)
	}
	skill, pin, err := s.located(ctx, o, args.Skill)
	if err != nil {
		return nil, err
	}
	input, err := s.input(ctx, o, skill, args)
	if err != nil {
		return nil, err
	}
	in := invocation{intent: o, skill: skill, pin: pin, input: input, swept: s.cache.sweeps()}
	key, err := keyOf(in)
	if err != nil || key == "" {
		return s.send(ctx, in, key)
	}
	k, found, end, err := s.cache.get(ctx, key, time.Duration(pin.CacheSeconds)*time.Second)
	if err != nil {
		return nil, err
	}
	if !found {
		defer end()
		return s.send(ctx, in, key)
	}
	event := executors.NewEvent("skill.cached", map[string]any{"skill_id": pin.Skill, "position": k.position})
	return s.result(ctx, in, k.content, []intents.ReportedEvent{event})
}

// send calls the skill's server. With a key, the answer may be cached.
func (s *skills) send(ctx context.Context, in invocation, key string) (*executors.Result, error) {
	o := in.intent
	o.Exchange(unsent)
	client, err := s.Registry.connect(ctx, in.skill.server)
	if err != nil {
		o.Exchange(exchanged(false, err))
		return nil, unreachable(ctx, err)
	}
	o.Exchange(nil)
	if err := s.withinRates(o, in.pin.Skill, in.skill.server); err != nil {
		return nil, err
	}
	o.Exchange(unanswered)
	began := s.Now()
	ctx, span := tracing.Start(ctx, "tools/call "+in.pin.Skill, tracing.Skill.String(in.pin.Skill))
	res, err := client.Call(ctx, in.skill.Name, in.input, s.meta(in))
	if err != nil {
		span.SetAttributes(tracing.Error.String("tool"))
	}
	span.End()
	in.took = s.Now().Sub(began)
	o.Exchange(exchanged(true, err))
	if err != nil {
		return nil, s.failure(ctx, in, res, err)
	}
	return s.answer(ctx, in, res, key)
}

// meta is sent with a call beside its input.
func (s *skills) meta(in invocation) mcp.CallMeta {
	o := in.intent
	m := mcp.CallMeta{
		IntentID: o.ID, Principal: o.Ticket.Actor.UserID, Owner: o.Ticket.Actor.Tenant + "\x00" + o.Ticket.Actor.UserID, Digest: in.pin.Digest, RetrySafe: repeatable(in.pin),
		OnMessage: func(x mcp.ServerMessage) { o.Write(x.Level, in.skill.Server+":"+x.Kind, x.Text, x.Data) },
		Log:       s.Log.With(slog.String("server", in.skill.Server), slog.String("skill", in.pin.Skill), slog.String("intent_id", o.ID)),
	}
	if t := o.Ticket.Scope; t != nil {
		m.Log = m.Log.With(slog.String("plan_id", t.Plan), slog.Int("step", t.Step))
		for _, name := range t.Skills { // as the server itself names them
			m.AllowedSkills = append(m.AllowedSkills, strings.TrimPrefix(name, serverOf(in.skill, in.pin)+"."))
		}
	}
	return m
}

// repeatable: the approved effect allows the skill to run more than once.
func repeatable(pin intents.Pin) bool {
	return pin.Effect == string(catalog.Pure) || pin.Effect == string(catalog.Idempotent)
}

// input is the input of the skill, checked against its own schema.
func (s *skills) input(ctx context.Context, o *executors.Intent, skill Skill, args catalog.SkillCall) (json.RawMessage, error) {
	input := json.RawMessage("{}")
	data, given, err := o.Data(ctx, s.Blobs, "/input", args.Input)
	if err != nil {
		return nil, err
	}
	if given {
		defer data.Close()
		if input, err = data.ReadAll(MaxInput); err != nil {
			return nil, err
		}
	}
	if skill.TakesPrincipal() {
		if input, err = withPrincipal(input, o.Ticket.Actor.UserID); err != nil {
			return nil, err
		}
	}
	schema, err := schemas.Compile(skill.InputSchema)
	if err != nil {
		return nil, executors.Fail(intents.ExecutorFailed, "the skill's input schema cannot be used")
	}
	broken := schema.ValidateWithin(ctx, input)
	if trimmed := bytes.TrimSpace(input); len(broken) == 0 && (len(trimmed) == 0 || trimmed[0] != '{') {
		broken = []schemas.Violation{{Reason: "must be object"}}
	}
	if len(broken) == 0 {
		return input, nil
	}
	violations := intents.Invalid("/input", broken[:min(len(broken), maxViolations)]).Violations
	reason := "the input does not match the skill's schema at /input" + broken[0].Pointer + ": " + broken[0].Reason
	return nil, executors.Fail(intents.MalformedArgs, reason).WithDetails(map[string]any{"violations": violations})
}

// withPrincipal replaces whatever a model wrote as principal by the user.
func withPrincipal(input json.RawMessage, user string) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil || members == nil {
		return nil, executors.Fail(intents.MalformedArgs, "the input of a skill is an object")
	}
	named, err := json.Marshal(user)
	if err != nil {
		return nil, err
	}
	members["principal"] = named
	return json.Marshal(members)
}

// maxViolations is how many violations of an input are reported.
const maxViolations = 20

// answer makes the result from the skill's answer. It removes the envelope first, so that nothing
// reads an answer for another user, or one of another type. An answer with files is not cached,
// because the files belong to the step; nor is an envelope, which is for one user, in a cache that
// all share.
func (s *skills) answer(ctx context.Context, in invocation, res *mcp.Result, key string) (*executors.Result, error) {
	content := executors.Content{Text: res.Text}
	switch {
	case !res.IsJSON:
	case intents.Unambiguous(res.Data) == nil:
		content.JSON = res.Data
	default:
		content.Text = string(res.Data)
		res.Odd = append(res.Odd, "its JSON can be read in two ways, and is given as a text")
	}
	envelope, err := in.skill.Unwrap(res.Data, in.intent.Ticket.Actor.UserID, res.Proof)
	if err != nil {
		return nil, s.failure(ctx, in, res, err)
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
	if len(res.Files) > 0 {
		if content, err = s.withFiles(ctx, in, content, res.Files); err != nil {
			return nil, s.lost(in, []intents.ReportedEvent{called(in, size, false)}, err)
		}
	}
	if len(res.Odd) > 0 && envelope == nil {
		if content, err = incomplete(content, res.Odd); err != nil {
			return nil, s.lost(in, []intents.ReportedEvent{called(in, size, false)}, err)
		}
	}
	if key != "" && len(res.Files) == 0 && len(res.Odd) == 0 && (envelope == nil || !in.pin.Shared) {
		s.cache.keep(key, in.kept(key, content, s.Now()), in.swept)
	}
	return s.result(ctx, in, content, []intents.ReportedEvent{called(in, size, content.Large())})
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
	return executors.Content{JSON: raw}, err
}

// kept is the answer as it is cached.
func (in invocation) kept(key string, content executors.Content, at time.Time) cachedAnswer {
	t := in.intent.Ticket
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
	return &executors.Result{Value: catalog.SkillCallResult{Output: output, Reference: ref, Status: content.Status}, Events: events}, nil
}

func (s *skills) inlineOrFile(ctx context.Context, in invocation, c executors.Content) (json.RawMessage, *catalog.Reference, error) {
	scope, err := in.intent.Scope()
	if err != nil && c.Large() {
		return nil, nil, err
	}
	return executors.InlineOrFile(ctx, s.Blobs, scope, c)
}

// called is the event of every invocation.
func called(in invocation, responseSize int, large bool) intents.ReportedEvent {
	return executors.NewEvent("skill.called", map[string]any{
		"skill_id": in.pin.Skill, "input_size_bytes": len(in.input), "response_size_bytes": responseSize,
		"duration_ms": in.took.Milliseconds(), "large_response_triggered": large,
	})
}
