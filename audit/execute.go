package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Run is a recorded run of a script, with all that it worked on.
type Run struct {
	Position   int64
	Tenant     string
	Step       storage.Scope // whose temporary files it might read
	Args       json.RawMessage
	Inputs     []intents.Input // resolved from "from" or "inputs"
	ScriptHash string          // of the run's facts: the script is kept under it
	Duties     []intents.Obligation
}

// Runner runs a script as its order did, in a sandbox and with no effect outside of
// it, and gives the order's result. The error is a NotExecutable where it cannot,
// a Mismatch where script or input are changed or the run fails, or ctx's.
type Runner func(ctx context.Context, r Run) (json.RawMessage, error)

// NotExecutable says why a run cannot be made again.
type NotExecutable string //nolint:errname // a finding that happens to be an error

func (n NotExecutable) Error() string { return string(n) }

// Mismatch says what of a run is not as it was recorded.
type Mismatch string //nolint:errname // a finding that happens to be an error

func (m Mismatch) Error() string { return string(m) }

// Executed is what came of running the recorded scripts again.
type Executed struct {
	OK            bool             `json:"ok"`
	Executed      int64            `json:"executed"` // again, to a result
	Agreed        int64            `json:"agreed"`
	Differing     []Difference     `json:"differing"`
	NotExecutable int64            `json:"not_executable"`
	Why           map[string]int64 `json:"not_executable_why,omitempty"`
	Seconds       float64          `json:"seconds"`
}

// Difference names a run that is not as it was recorded. The digests are of the
// canonical results; empty where there is none.
type Difference struct { //nolint:errname // a finding, which embeds one that is an error
	Bad
	Recorded string `json:"recorded,omitempty"`
	Comes    string `json:"comes,omitempty"`
}

// ExecuteRecords runs the recorded scripts of a data directory again, in shadow:
// of all types only that which is pure and determined by its input, exec_python.
func ExecuteRecords(ctx context.Context, records storage.Records, run Runner) (Executed, error) {
	return execute(ctx, run, func(yield func(*item, error) bool) {
		for rec, err := range records.Scan(ctx, 0) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(ownItem(rec), nil) {
				return
			}
		}
	})
}

// ExecuteBundle runs the scripts of a bundle again, as far as their inputs are in
// it. It believes the bundle: verify it first.
func ExecuteBundle(ctx context.Context, r io.Reader, run Runner) (Executed, error) {
	return execute(ctx, run, func(yield func(*item, error) bool) {
		for l := newLines(r); ; {
			raw, err := l.next()
			if errors.Is(err, io.EOF) {
				return
			}
			var got line
			if err == nil {
				got, err = decodeLine(raw)
			}
			if err != nil {
				yield(nil, fmt.Errorf("%w: %w", ErrMalformed, err))
				return
			}
			if got.Record != nil && !yield(recordItem(got.Record), nil) {
				return
			}
		}
	})
}

func execute(ctx context.Context, run Runner, items iter.Seq2[*item, error]) (Executed, error) {
	started := time.Now()
	s := shadow{run: run, open: map[int64]*ran{}, results: map[string]map[string]stepResult{}}
	s.Differing, s.Why = []Difference{}, map[string]int64{}
	for it, err := range items {
		if err == nil && it.err != nil {
			err = &Bad{Position: it.Position, Reason: it.err.Error()}
		}
		if err == nil {
			err = s.take(ctx, it)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return s.Executed, err
		}
	}
	s.OK, s.Seconds = len(s.Differing) == 0, since(started)
	return s.Executed, nil
}

// shadow follows a record and runs scripts where their outcomes are.
type shadow struct {
	Executed
	run  Runner
	open map[int64]*ran // without an outcome as yet
	// results of a plan's orders by where they are found, until the plan ends.
	results map[string]map[string]stepResult
}

// ran is an order of a step.
type ran struct {
	item *item
	held *state.Release
	step storage.Scope
}

// stepResult is a result that a later order of the same step may name.
type stepResult struct {
	output json.RawMessage
	file   string
	sha256 string
}

// ends are the types after which nothing of a plan is named any more.
var ends = []string{"plan.close", "cancel"}

func (s *shadow) take(ctx context.Context, it *item) error {
	switch {
	case it.hidesOrder() && (it.blind || !slices.Contains(ends, it.order.body.Intent.Type)):
		if it.blind || it.order.body.Intent.Type == scripts {
			s.cannot("the order is withheld: " + it.whyHidden())
		}
	case it.order != nil && it.order.decision.Verdict != intents.Deny:
		c := it.order.ctx
		step := storage.Scope{Tenant: it.order.body.Actor.Tenant, Plan: c.PlanID, Revision: c.Revision, Step: c.Step, Ask: c.Ask}
		s.open[it.Position] = &ran{item: it, step: step}
	case it.release != nil:
		if r := s.open[it.of]; r != nil {
			r.held = it.release
		}
	case it.Kind == storage.KindOutcome:
		r := s.open[it.of]
		delete(s.open, it.of)
		if r != nil {
			return s.settle(ctx, r, it.outcome)
		}
	}
	return nil
}

// settle an order by its outcome.
func (s *shadow) settle(ctx context.Context, r *ran, out *intents.Outcome) error {
	plan := r.step.Tenant + "\x00" + r.step.Plan
	typ := r.item.order.body.Intent.Type
	if slices.Contains(ends, typ) {
		delete(s.results, plan)
		return nil
	}
	if typ == scripts {
		if err := s.again(ctx, r, out); err != nil {
			return err
		}
	}
	if out.Status != intents.Done || r.step.Plan == "" {
		return nil
	}
	var x struct {
		Output json.RawMessage `json:"output"`
		Data   json.RawMessage `json:"data"`
		Lines  json.RawMessage `json:"lines"`
		File   string          `json:"file_id"`
		SHA256 string          `json:"sha256"`
	}
	if out.Result == nil || json.Unmarshal(out.Result, &x) != nil {
		return ctx.Err() // no object, or erased: nothing in it can be named
	}
	res := stepResult{file: x.File, sha256: x.SHA256, output: out.Result}
	for _, v := range []json.RawMessage{x.Lines, x.Data, x.Output} {
		if v != nil {
			res.output = v
		}
	}
	if s.results[plan] == nil {
		s.results[plan] = map[string]stepResult{}
	}
	s.results[plan][place(r.step, r.item.order.decision.IntentID)] = res
	if x.File != "" {
		s.results[plan][place(r.step, x.File)] = res
	}
	return nil
}

// place of a result in its plan.
func place(s storage.Scope, name string) string {
	return fmt.Sprintf("%d/%d/%s", s.Revision, s.Step, name)
}

// scripts is the type that is run again.
const scripts = "exec_python"

// again runs one script again. The error is that of the context.
func (s *shadow) again(ctx context.Context, r *ran, out *intents.Outcome) error {
	job, err := s.job(r, out)
	var result json.RawMessage
	if err == nil {
		result, err = s.run(ctx, job)
	}
	var not NotExecutable
	var differs Mismatch
	d := Difference{Bad: Bad{Position: r.item.Position, IntentID: r.item.order.decision.IntentID}}
	switch {
	case errors.As(err, &not):
		s.cannot(string(not))
		return ctx.Err()
	case errors.As(err, &differs):
		d.Reason = string(differs)
	case err != nil:
		return err
	default:
		d.Recorded, d.Comes = canonicalDigest(out.Result), canonicalDigest(result)
		s.Executed.Executed++
		d.Reason = "the script's result comes out otherwise than it was recorded"
	}
	if err == nil && d.Recorded == d.Comes && d.Comes != "" {
		s.Agreed++
		return nil
	}
	s.Differing = append(s.Differing, d)
	return nil
}

func (s *shadow) cannot(why string) {
	s.NotExecutable++
	s.Why[why]++
}

// job of a script, with its input as the router resolved it.
func (s *shadow) job(r *ran, out *intents.Outcome) (Run, error) {
	o := r.item.order
	job := Run{Position: r.item.Position, Tenant: r.step.Tenant, Step: r.step, Args: o.body.Intent.Args, Duties: o.decision.Obligations}
	facts := o.facts
	if r.held != nil {
		facts, job.Duties = r.held.Facts, r.held.Decision.Obligations
	}
	switch {
	case out.Status != intents.Done:
		return job, NotExecutable("it has no result to compare (" + string(out.Code) + ")")
	case out.Result == nil:
		return job, NotExecutable("its result was erased")
	case slices.ContainsFunc(job.Duties, func(ob intents.Obligation) bool { return ob.Name == "mask" }):
		return job, NotExecutable("a policy masked its result")
	}
	job.ScriptHash = scriptHash(out)
	for _, in := range facts.Inputs {
		job.Inputs = append(job.Inputs, intents.Input{Pointer: in.Pointer, Ref: in.Ref, SHA256: in.SHA256, Size: in.Size})
	}
	if len(job.Inputs) > 0 {
		return job, nil
	}
	row, _ := catalog.Builtin().Lookup(scripts)
	named, err := catalog.InputsOf(row, job.Args)
	if err != nil {
		return job, NotExecutable("its arguments cannot be read")
	}
	for _, from := range named {
		in := intents.Input{Pointer: from.Pointer}
		switch res, known := s.results[r.step.Tenant+"\x00"+r.step.Plan][place(r.step, from.Ref)]; {
		case strings.HasPrefix(from.Ref, "cas://"):
			in.Ref, in.SHA256 = from.Ref, strings.TrimPrefix(from.Ref, "cas://")
		case known && res.file != "":
			in.Ref, in.SHA256 = res.file, res.sha256
		case known:
			in.Value, in.SHA256, in.Size = res.output, intents.Digest(res.output), int64(len(res.output))
		case strings.HasPrefix(from.Ref, "sha256:"):
			return job, NotExecutable("its input is the result of an order that is not in the record")
		default:
			in.Ref = from.Ref
		}
		job.Inputs = append(job.Inputs, in)
	}
	return job, nil
}

// scriptHash that the run's facts name; empty: none.
func scriptHash(out *intents.Outcome) string {
	for _, f := range out.Facts {
		var p struct {
			Hash string `json:"script_hash"`
		}
		if f.Event == "python_script.executed" && json.Unmarshal(f.Payload, &p) == nil {
			return p.Hash
		}
	}
	return ""
}

// canonicalDigest of a document; empty: it is none.
func canonicalDigest(doc []byte) string {
	c, err := intents.Canonical(doc)
	if err != nil {
		return ""
	}
	return intents.Digest(c)
}
