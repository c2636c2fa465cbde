package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// complete ends the plan with the answer to the user.
func (d *drive) complete(ctx context.Context) error {
	response, err := d.response(ctx)
	if err != nil {
		return err
	}
	data, err := d.data(ctx)
	if err != nil {
		return err
	}
	if err := d.dreamt(ctx, response); err != nil {
		return err
	}
	response = d.rememberEnd(ctx, response)
	if err := d.move(ctx, "plan.close", catalog.PlanClose{PlanID: d.turn.PlanID, Epoch: d.epoch, Status: string(catalog.PlanComplete), Response: response, Usage: d.used}); err != nil {
		return err
	}
	d.frame(bus.FrameAnswer, bus.AnswerData{Response: response, Data: data, Components: d.components})
	d.frame(bus.FrameDone, bus.DoneData{PlanID: d.turn.PlanID, Status: string(catalog.PlanComplete)})
	d.routed(ctx)
	return nil
}

// maxResponse bounds an answer, in bytes.
const maxResponse = 32 << 10

// response is the answer in words: the planner's own, the text of a single step, or
// what the composer writes from the results.
func (d *drive) response(ctx context.Context) (string, error) {
	if len(d.plan.Steps) == 0 || d.plan.Agent != "" {
		return d.answer, nil
	}
	if only := d.plan.Steps[0]; len(d.plan.Steps) == 1 && only.ReturnSpec.Shape == "string" {
		var text string
		if json.Unmarshal(d.results[only.Step].data, &text) == nil && strings.TrimSpace(text) != "" {
			return cut(guarded(text), maxResponse), nil
		}
	}
	var results []stepResult
	for _, s := range d.plan.Steps {
		r := d.results[s.Step].show(composeShow)
		r.Step = s.PlanStep
		results = append(results, r)
	}
	return d.composed(ctx, "Results", results)
}

// composed is a text of the composer's, which the user is shown while it comes.
func (d *drive) composed(ctx context.Context, block string, about any) (string, error) {
	show := d.tokens()
	text, err := d.compose(ctx, block, about, show.take)
	if err != nil {
		show.withdraw()
		return "", err
	}
	show.flush(true)
	return guarded(text), nil
}

// tokens show a text for the user while it comes.
func (d *drive) tokens() *tokens {
	return &tokens{show: func(data bus.ContentData) { d.frame(bus.FrameToken, data) }, now: d.cfg.Now}
}

// compose has the composer write a text for the user, about what stands in a block.
// on gets it while it comes.
func (d *drive) compose(ctx context.Context, block string, about any, on func(model.Event)) (string, error) {
	if d.dreams() {
		return "", nil // which nobody would read
	}
	var m blocks
	m.add(block, about)
	if block == "Failure" && len(d.plan.Facts) > 0 { // what was done all the same
		m.add("Effects", d.plan.Facts)
	}
	agent := agents.Builtin(agents.Composer)
	l := &loop{
		model: d.cfg.Model, log: d.cfg.Log, agent: agent, on: on,
		req: request(agent, d.soul, d.turn, d.cfg.Now(), m.task(d.task)),
	}
	text, err := l.run(ctx)
	d.used = catalog.AddUsage(d.used, l.used...)
	if err == nil && strings.TrimSpace(text) == "" {
		err = &model.Error{Reason: "the model answered without text"}
	}
	return cut(text, maxResponse), err
}

// data is the result of the last step as the user gets it. A result that is too
// large to be inline is kept as an artifact, since its file will be removed and no
// user can read it. If that is refused, the user gets the name of the file and its
// first lines.
func (d *drive) data(ctx context.Context) (json.RawMessage, error) {
	if len(d.plan.Steps) == 0 || d.plan.Agent != "" {
		return nil, nil
	}
	last := d.plan.Steps[len(d.plan.Steps)-1]
	if d.results[last.Step].ref == nil {
		return d.results[last.Step].answer(), nil
	}
	if err := d.read(ctx, last.Step, last.MemoryKey); err != nil { // its file may have been swept since
		return nil, err
	}
	r := d.results[last.Step]
	if r.ref == nil {
		return r.answer(), nil
	}
	var kept catalog.ArtifactPutResult
	_, err := d.order(ctx, "artifact.put", catalog.ArtifactPut{From: r.ref.FileID, MediaType: resultType}, &kept)
	var refused *OrderError
	if errors.As(err, &refused) {
		d.cfg.Log.WarnContext(ctx, "a large result is not kept", slog.String("plan_id", d.turn.PlanID), slog.String("error", err.Error()))
		return r.answer(), nil
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(bus.ArtifactData{
		Artifact: kept.Artifact, SizeBytes: kept.SizeBytes, MediaType: resultType, URL: bus.ArtifactURL(kept.Artifact), Sample: r.ref.Sample,
	})
}

// resultType of what a step remembers: JSON, in a file with an element a line.
const resultType = "application/json"

// fail closes the plan with the structured failure, for machines, and
// tells the user why in plain language.
func (d *drive) fail(ctx context.Context, reason, why string) error {
	f := catalog.Failure{Reason: cut(reason, 1000), CompletedSteps: d.done()}
	if n := len(d.plan.History); n > 0 {
		h := d.plan.History[n-1]
		f.LastFailure = &catalog.LastFailure{Step: h.FailedStep, Reason: cut(h.Reason, 1000)}
	}
	line, each := d.before(ctx)
	if each != "" {
		why += "\nBefore it failed: " + line + "\n" + each
	}
	if line != "" {
		line = " Before it failed: " + line + "."
	}
	response, err := "I could not complete this request: "+why, error(nil)
	if !d.spent {
		response, err = d.compose(ctx, "Failure", why, nil)
	}
	var unanswered *model.Error
	switch {
	case errors.As(err, &unanswered):
		response = "I could not complete this request: " + plain(err) + "." + line
	case err != nil:
		response = "I could not complete this request." + line
	case !d.spent && !d.dreams() && line != "": // whatever the model makes of it
		response = strings.TrimSpace(response + "\n\n" + strings.TrimSpace(line))
	}
	response = guarded(response)
	if d.drives(ctx) {
		response = d.rememberEnd(ctx, response)
	}
	if err := d.move(ctx, "plan.close", catalog.PlanClose{PlanID: d.turn.PlanID, Epoch: d.epoch, Status: string(catalog.PlanFailed), Failure: &f, Usage: d.used}); err != nil {
		return err
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	d.frame(bus.FrameError, bus.ErrorData{Reason: response, Failure: raw})
	d.frame(bus.FrameDone, bus.DoneData{PlanID: d.turn.PlanID, Status: string(catalog.PlanFailed)})
	d.routed(ctx)
	return nil
}

// abandon ends a plan that this driver can do nothing more for.
func (d *drive) abandon(ctx context.Context, cause error) {
	reason := plain(cause)
	var refused *OrderError
	if errors.As(cause, &refused) && refused.Answer.Code == intents.RateLimited { // no model is asked any more
		reason, d.spent = refused.Answer.Reason, true
	}
	if err := d.fail(ctx, reason, reason); err != nil {
		d.cfg.Log.WarnContext(ctx, "plan.close", slog.String("plan_id", d.turn.PlanID), slog.String("error", err.Error()))
		text := "I could not complete this request."
		if line, _ := d.before(ctx); line != "" {
			text += " Before it failed: " + line + "."
		}
		d.frame(bus.FrameError, bus.ErrorData{Reason: guarded(text)})
		d.frame(bus.FrameDone, bus.DoneData{PlanID: d.turn.PlanID, Status: string(catalog.PlanFailed)})
	}
}
