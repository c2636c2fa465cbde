package agentic

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state/agents"
)

// The agent producer turns one sentence into one intent. The intent is signed here, under the
// requester's grant, and returned: anyone who has it may submit it, and the router judges it as
// any other. The manager asks the model, and signs what its key may sign. Intents that only the
// planner's key may sign are produced by the planner.

// produced are the types of intents that a sentence may become, if the catalog has them.
// hitl.approve is not among them: people approve, and no model does it for them.
var produced = []string{"workflow.start", "run.replay", "graph.patch", "logs.stream", "artifact.get", "cache.invalidate", "kb.search"}

// producible is a type as the producer reads it.
type producible struct {
	Type  string          `json:"type"`
	About string          `json:"about"`
	Args  json.RawMessage `json:"args"` // JSON Schema

	row catalog.Row
}

// producibles returns the types that one of the roles may sign.
func producibles(types *catalog.Catalog, roles ...intents.Role) (out []producible, err error) {
	for _, typ := range produced {
		row, there := types.Lookup(typ)
		if !there || !slices.ContainsFunc(roles, row.MaySign) {
			continue
		}
		schema, err := row.ArgsSchema()
		if err != nil {
			return nil, err
		}
		args, err := schemas.Bundle(schema.Source()) // with everything that it refers to
		if err != nil {
			return nil, err
		}
		out = append(out, producible{typ, row.Title, args, row})
	}
	return out, nil
}

// produce serves the gateway.
func (m *Manager) produce(ctx context.Context, q bus.ProduceRequest) bus.ProduceReply {
	ofPlanner := func() (reply bus.ProduceReply) {
		if err := delegate(ctx, m.cfg.Bus, bus.Produce("planner"), m.cfg.stepTime(), q, &reply); err != nil {
			return unproduced(ctx, m.cfg, err)
		}
		return reply
	}
	leave, ok := m.room.Take(q.Tenant, keyOf(q.Grant))
	if !ok {
		return bus.ProduceReply{Code: string(intents.Overloaded), Reason: "too many requests are being thought of"}
	}
	defer leave()
	return producedBy(ctx, m.cfg, q, ofPlanner, intents.RoleManager, intents.RolePlanner)
}

// produce serves the manager.
func (p *Planner) produce(ctx context.Context, q bus.ProduceRequest) bus.ProduceReply {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.stepTime())
	defer cancel()
	leave, err := p.places.Wait(ctx, q.Tenant, keyOf(q.Grant), 0)
	if err != nil {
		return unproduced(ctx, p.cfg, err)
	}
	defer leave()
	return producedBy(ctx, p.cfg, q, nil, intents.RolePlanner)
}

// producedBy has the model produce an intent that one of the roles may sign. The first role's key
// is here; an intent that it may not sign is produced by another.
func producedBy(ctx context.Context, cfg Config, q bus.ProduceRequest, another func() bus.ProduceReply, roles ...intents.Role) bus.ProduceReply {
	offered, err := producibles(catalog.Builtin(), roles...)
	if err != nil {
		return unproduced(ctx, cfg, err)
	}
	p := producer{cfg, q, offered}
	made, row, err := p.ask(ctx)
	switch {
	case err != nil:
		return unproduced(ctx, cfg, err)
	case made.Type == "":
		return bus.ProduceReply{Reason: made.Reason}
	case another != nil && !row.MaySign(roles[0]):
		return another()
	}
	return p.sign(ctx, made, row)
}

// unproduced reports that no intent was produced.
func unproduced(ctx context.Context, cfg Config, err error) (r bus.ProduceReply) {
	cfg.Log.WarnContext(ctx, "producer", slog.String("error", model.Detail(err)))
	r.Code, r.Reason = unmade(err)
	return r
}

// unmade returns the code and the reason why there is no result, for the gateway.
func unmade(err error) (code, reason string) {
	if code, reason = failure(err); code == string(intents.Internal) {
		code, reason = string(intents.DispatchUnavailable), plain(err)
	}
	return code, reason
}

// producer produces one intent.
type producer struct {
	cfg     Config
	req     bus.ProduceRequest
	offered []producible
}

// envelope is the model's output for a sentence: a type with its arguments, or a reason.
type envelope struct {
	Type   string          `json:"type"`
	Args   json.RawMessage `json:"args"`
	Reason string          `json:"reason"`
}

// ask has the model write one envelope. A reply with none, several or an invalid one is corrected
// once; then the reason says so.
func (p producer) ask(ctx context.Context) (made envelope, row catalog.Row, err error) {
	var m blocks
	m.add("Intents", p.offered)
	agent := p.cfg.builtin(agents.Producer)
	output, err := outputTool(agent, nil)
	if err != nil {
		return made, row, err
	}
	l := &loop{model: p.cfg.modelOf(agent), log: p.cfg.Log, agent: agent, req: request(agent, "", p.turn(), p.cfg.Now(), m.task(p.req.Request))}
	l.read()
	defer func() {
		if failed := p.cfg.reportUsage(ctx, p.turn(), l.used); err == nil {
			err = failed
		}
	}()
	var wrong *mistake
	for range 2 {
		reply, err := l.respond(ctx, []*tool{output})
		if err != nil {
			return made, row, err
		}
		if made, row, wrong = p.read(l, reply.Calls); wrong == nil {
			return made, row, nil
		}
		for _, c := range reply.Calls {
			l.answer(c, nil, wrong)
		}
		if len(reply.Calls) == 0 {
			l.say(wrong.Error())
		}
	}
	return envelope{Reason: "no single intent could be made of the request: " + wrong.Error()}, row, nil
}

// reportUsage records the model usage of a user that no plan has, for the budgets. A standing grant is
// for its plan alone, so the turn names that. A crash before leaves it uncounted, and the request
// unanswered.
func (c Config) reportUsage(ctx context.Context, t Turn, used []catalog.Usage) error {
	if len(used) == 0 {
		return nil
	}
	_, err := c.submitter(*c.Key).Submit(context.WithoutCancel(ctx), t, Place{}, "usage.report", catalog.UsageReport{Usage: used}, nil)
	return err
}

// read reads the one envelope of a reply.
func (p producer) read(l *loop, calls []model.Call) (made envelope, row catalog.Row, wrong *mistake) {
	if len(calls) != 1 {
		return made, row, &mistake{[]string{"the reply must have exactly one intent, or one reason: call " + finalResult + " exactly once"}}
	}
	_, raw, _, err := l.prepare(calls[0])
	if err == nil {
		err = json.Unmarshal(raw, &made)
	}
	if err != nil {
		return envelope{}, row, &mistake{[]string{err.Error()}}
	}
	if (made.Type == "") == (strings.TrimSpace(made.Reason) == "") {
		return envelope{}, row, &mistake{[]string{"give either a type with its args, or a reason"}}
	}
	if made.Type == "" {
		made.Reason = guarded(made.Reason)
		return made, row, nil
	}
	i := slices.IndexFunc(p.offered, func(o producible) bool { return o.Type == made.Type })
	if i < 0 {
		return envelope{}, row, &mistake{[]string{"/type: is none of the types under [Intents]"}}
	}
	row = p.offered[i].row
	schema, err := row.ArgsSchema()
	if err != nil {
		return envelope{}, row, &mistake{[]string{err.Error()}}
	}
	if found := violations(schema, made.Args); len(found) > 0 {
		for i := range found {
			found[i] = "/args" + found[i]
		}
		return envelope{}, row, &mistake{found}
	}
	return made, row, nil
}

func (p producer) turn() Turn { return Turn{TurnRef: p.req.TurnRef} }

// sign signs the intent that the model has written.
func (p producer) sign(ctx context.Context, made envelope, row catalog.Row) bus.ProduceReply {
	t := p.turn()
	c := intents.Context{SessionID: t.SessionID, TurnID: t.TurnID}
	s := p.cfg.submitter(*p.cfg.Key)
	signed, id, err := s.sign(t, intents.Spec{Type: made.Type, Args: made.Args}, c, row.Key(made.Args, t.UserID, c), row.CapabilitiesFor(made.Args, t.UserID)...)
	if err != nil {
		return unproduced(ctx, p.cfg, err)
	}
	return bus.ProduceReply{Envelope: signed, IntentID: id, Type: made.Type}
}
