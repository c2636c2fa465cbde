package skills

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	if skill.server.parent != nil {
		pin.Shared = false // another user might not get the answer
		if skill.server.parent.byKey {
			pin.CacheSeconds = 0 // nor the same one with another key
		}
	}
	if skill.Name == catalog.ReadSkill {
		return nil, executors.Fail(intents.MalformedArgs, "resources and prompts are read by resource.read")
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

// exchange does one part of the exchange with a skill server, in which something is sent or nothing
// yet, and has the report say how it went. Until it ends it counts as failed, since the run may be
// cut off in it.
func exchange[T any](o *executors.Intent, sent bool, do func() (T, error)) (T, error) {
	o.Exchange(&intents.Transport{Sent: sent, Failure: true})
	got, err := do()
	o.Exchange(exchanged(sent, err))
	return got, err
}

// exchanged is the outcome of an exchange with a server. A server that answers, even with a refusal
// or a tool's error, has not failed. nil: nothing was asked of it yet, or it may not be called, which
// is no evidence about it.
func exchanged(sent bool, err error) *intents.Transport {
	var e *mcp.Error
	switch known := errors.As(err, &e); {
	case err == nil && !sent:
		return nil
	case !known:
		return &intents.Transport{Sent: sent, Failure: err != nil}
	case e.Barred:
		return nil
	}
	return &intents.Transport{Sent: sent && !e.Undelivered, Failure: e.Broken()}
}

// located is approved for a call. If the skill's own server could not be asked, the server has
// failed.
func (s *skills) located(ctx context.Context, o *executors.Intent, name string) (Skill, intents.Pin, error) {
	var pin intents.Pin
	skill, err := exchange(o, false, func() (skill Skill, err error) {
		skill, pin, err = s.approved(ctx, o, name)
		return skill, err
	})
	if err == nil {
		return skill, pin, nil
	}
	o.Exchange(nil) // it may be the skill or its approval that fails
	for _, h := range s.Registry.Health() {
		if h.Err != nil && strings.HasPrefix(pin.Skill, h.Name+".") {
			o.Exchange(exchanged(false, h.Err))
		}
	}
	return skill, pin, err
}

// send calls the skill's server. With a key, the answer may be cached.
func (s *skills) send(ctx context.Context, in invocation, key string) (*executors.Result, error) {
	o := in.intent
	client, err := exchange(o, false, func() (Server, error) { return s.Registry.connect(ctx, in.skill.server) })
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	if err := s.withinRates(o, in.pin.Skill, in.skill.server); err != nil {
		return nil, err
	}
	began := s.Now()
	ctx, span := tracing.Start(ctx, "tools/call "+in.pin.Skill, tracing.Skill.String(in.pin.Skill))
	res, err := exchange(o, true, func() (*mcp.Result, error) { return client.Call(ctx, in.skill.Name, in.input, s.meta(in)) })
	if err != nil {
		span.SetAttributes(tracing.Error.String("tool"))
	}
	if errors.Is(err, mcp.ErrRefused) || errors.Is(err, mcp.ErrUnconnected) {
		s.Registry.reopen(in.skill.server, client)
	}
	span.End()
	in.took = s.Now().Sub(began)
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
		OnMessage:  func(x mcp.ServerMessage) { o.Write(x.Level, in.skill.Server+":"+x.Kind, x.Text, x.Data) },
		RetryLate:  in.pin.Kind == intents.KindAgent,
		OnProgress: o.Progress,
		Log:        s.Log.With(slog.String("server", in.skill.Server), slog.String("skill", in.pin.Skill), slog.String("intent_id", o.ID)),
	}
	if !intents.Keepable(o.Ticket.Obligations) { // what the server says meanwhile may have what is hidden
		m.Log = slog.New(slog.DiscardHandler)
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
	broken := schemas.Tolerate(skill.InputSchema).ValidateWithin(ctx, input)
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
