package router

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// inputs resolves the member "from" of the arguments, and each of "inputs": an order of
// the same plan step, a file of the step, or a blob of the tenant.
func (r *Router) inputs(ctx context.Context, o *order) ([]intents.Input, error) {
	if len(o.facts.Inputs) > 0 {
		return r.heldInputs(ctx, o)
	}
	if o.env.Type() == typeTranscript {
		return r.transcript(ctx, o)
	}
	if o.row.DataAt == "" {
		return nil, nil
	}
	named, err := catalog.InputsOf(o.row, o.env.Args())
	if err != nil {
		return nil, err
	}
	var out []intents.Input
	for _, from := range named {
		in := intents.Input{Pointer: from.Pointer}
		switch {
		case strings.HasPrefix(from.Ref, "cas://"):
			err = r.fromBlob(ctx, o, from.Ref, &in)
		case strings.HasPrefix(from.Ref, "sha256:"):
			err = r.fromOrder(ctx, o, from.Ref, &in)
		default:
			err = r.fromFile(ctx, o, from.Ref, &in)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, in)
	}
	return out, nil
}

func noSuchInput() error {
	return intents.Refuse(intents.MalformedArgs, "/intent/args/from", "names nothing that this step may read")
}

func (r *Router) scopeOf(o *order) storage.Scope {
	c := o.env.Context()
	if c.PlanID == "" {
		return storage.TurnScope(o.env.Principal().Tenant, c.TurnID)
	}
	return storage.Scope{Tenant: o.env.Principal().Tenant, Plan: c.PlanID, Revision: c.Revision, Step: c.Step, Ask: c.Ask}
}

func (r *Router) fromFile(ctx context.Context, o *order, id string, in *intents.Input) error {
	f, info, err := r.cfg.Blobs.Open(ctx, r.scopeOf(o).At(in.Step), id)
	if errors.Is(err, storage.ErrNotFound) {
		return noSuchInput()
	}
	if err != nil {
		return err
	}
	in.Ref, in.SHA256, in.Size = id, info.SHA256, info.Size
	return f.Close()
}

func (r *Router) fromBlob(ctx context.Context, o *order, ref string, in *intents.Input) error {
	f, size, err := r.cfg.Blobs.Fetch(ctx, o.env.Principal().Tenant, ref)
	if errors.Is(err, storage.ErrNotFound) {
		return noSuchInput()
	}
	if err != nil {
		return err
	}
	in.Ref, in.SHA256, in.Size = ref, strings.TrimPrefix(ref, "cas://"), size
	_, err = io.Copy(io.Discard, f) // the digest is checked before use
	return errors.Join(err, f.Close())
}

// fromOrder takes the result of an order of the same step, or of a node of the same run: its data inline, or
// the file that it went to.
func (r *Router) fromOrder(ctx context.Context, o *order, id string, in *intents.Input) error {
	pos, step, ok := o.view.OrderOf(o.env.Principal().Tenant, o.env.Context(), id)
	if !ok {
		return noSuchInput()
	}
	if step != o.env.Context().Step {
		in.Step = step
	}
	h, err := r.cfg.Journal.Holder(ctx, pos)
	if err != nil {
		return err
	}
	dup, err := r.readDuplicate(ctx, h)
	if err != nil {
		return err
	}
	if dup.outcome == nil || dup.outcome.Status != intents.Done || dup.outcome.Result == nil {
		return intents.Refuse(intents.MalformedArgs, "/intent/args/from", "that order has no result")
	}
	var result struct {
		Output json.RawMessage `json:"output"`
		Data   json.RawMessage `json:"data"`
		Lines  json.RawMessage `json:"lines"`
		FileID string          `json:"file_id"`
	}
	if err := json.Unmarshal(dup.outcome.Result, &result); err != nil {
		return err
	}
	if result.FileID != "" {
		return r.fromFile(ctx, o, result.FileID, in)
	}
	for _, v := range []json.RawMessage{result.Output, result.Data, result.Lines, dup.outcome.Result} {
		if v != nil {
			in.Value, in.SHA256, in.Size = v, intents.Digest(v), int64(len(v))
			return nil
		}
	}
	return noSuchInput()
}
