package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

// inputs are what an order's ticket holds beside its arguments: what "from" and "inputs" name,
// with the digests that the order was decided on.
func (r *Router) inputs(ctx context.Context, o *order) ([]intents.Input, error) {
	if o.released && len(o.facts.Inputs) > 0 {
		return r.heldInputs(ctx, o)
	}
	if o.env.Type() == typeTranscript {
		return r.transcript(ctx, o)
	}
	named, err := catalog.InputsOf(o.row, o.env.Args())
	if err != nil {
		return nil, err
	}
	var out []intents.Input
	for _, from := range named {
		in, err := r.resolve(ctx, o, from)
		if err != nil {
			return nil, err
		}
		if seen := o.seen(in.Pointer); seen != "" && seen != in.SHA256 {
			return nil, intents.Refuse(intents.MalformedArgs, "/intent/args/from", "is not what it was when the order was decided")
		}
		if strings.HasPrefix(in.Ref, "cas://") {
			if _, err := r.content(ctx, o, in); err != nil { // the digest is checked before use
				return nil, err
			}
		}
		out = append(out, in)
	}
	return out, nil
}

// seen is the digest of an input that the order was decided on; empty: it was not there then.
func (o *order) seen(pointer string) string {
	for _, in := range o.facts.Inputs {
		if in.Pointer == pointer {
			return in.SHA256
		}
	}
	return ""
}

// resolve finds what an order names: the result of an order of the same plan step, a file of the
// step, or a blob of the tenant, whose bytes are not looked at.
func (r *Router) resolve(ctx context.Context, o *order, from catalog.NamedInput) (intents.Input, error) {
	in := intents.Input{Pointer: from.Pointer}
	var err error
	switch {
	case strings.HasPrefix(from.Ref, "cas://"):
		err = r.fromBlob(ctx, o, from.Ref, &in)
	case strings.HasPrefix(from.Ref, "sha256:"):
		err = r.fromOrder(ctx, o, from.Ref, &in)
	default:
		err = r.fromFile(ctx, o, from.Ref, &in)
	}
	return in, err
}

// look resolves what an order names before policy is asked, and reads what policy may see of it.
// What is not there yet, such as the result of an order before it in its batch, policy sees as a mark.
func (r *Router) look(ctx context.Context, o *order) error {
	if o.released {
		return r.lookAtHeld(ctx, o)
	}
	named, err := catalog.InputsOf(o.row, o.env.Args())
	if err != nil {
		return err
	}
	o.facts.Inputs = nil
	for _, from := range named {
		in, err := r.resolve(ctx, o, from)
		var refusal *intents.Refusal
		if errors.As(err, &refusal) {
			in, err = intents.Input{Pointer: from.Pointer}, nil
		}
		if err == nil {
			err = r.show(ctx, o, in)
		}
		if err != nil {
			return err
		}
		o.facts.Inputs = append(o.facts.Inputs, intents.HeldInput{Pointer: in.Pointer, Ref: in.Ref, SHA256: in.SHA256, Size: in.Size, Inline: in.Value != nil})
	}
	return nil
}

// lookAtHeld reads what policy may see of the inputs that a held order was kept with.
func (r *Router) lookAtHeld(ctx context.Context, o *order) error {
	for _, h := range o.facts.Inputs {
		if err := r.show(ctx, o, intents.Input{Pointer: h.Pointer, Ref: h.Ref, SHA256: h.SHA256, Size: h.Size}); err != nil {
			return err
		}
	}
	return nil
}

// show reads an input where the policy in force can read it and it is small.
func (r *Router) show(ctx context.Context, o *order, in intents.Input) error {
	if in.SHA256 == "" || in.Size >= policies.MaxSeen || !o.policy.Reads(in.Pointer) {
		return nil
	}
	data, err := r.content(ctx, o, in)
	if err == nil && intents.Digest(data) != in.SHA256 {
		err = fmt.Errorf("the input at %s does not have its digest", in.Pointer)
	}
	if err != nil {
		return err
	}
	if o.facts.Data == nil {
		o.facts.Data = map[string][]byte{}
	}
	o.facts.Data[in.Pointer] = data
	return nil
}

// content reads an input, and checks its digest. Nothing is returned of one that policies do not see for its size.
func (r *Router) content(ctx context.Context, o *order, in intents.Input) ([]byte, error) {
	if in.Value != nil {
		return in.Value, nil
	}
	var f io.ReadCloser
	var err error
	if strings.HasPrefix(in.Ref, "cas://") {
		f, _, err = r.cfg.Blobs.Fetch(ctx, o.env.Principal().Tenant, in.Ref)
	} else {
		f, _, err = r.cfg.Blobs.Open(ctx, r.scopeOf(o).At(in.Step), in.Ref)
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil, noSuchInput()
	}
	if err != nil {
		return nil, err
	}
	small := bytes.Buffer{}
	_, err = io.CopyN(&small, f, policies.MaxSeen)
	if err == nil { // it is large
		small.Reset()
		_, err = io.Copy(io.Discard, f)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	return small.Bytes(), f.Close()
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
	return f.Close()
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
	value, file, err := catalog.DataOf(dup.outcome.Result)
	if err != nil {
		return err
	}
	if file != "" {
		return r.fromFile(ctx, o, file, in)
	}
	in.Value, in.SHA256, in.Size = value, intents.Digest(value), int64(len(value))
	return nil
}
