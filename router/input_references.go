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

// inputs are what an intent's ticket holds besides its arguments: what "from" and "inputs" name,
// with the digests of the decision.
func (r *Router) inputs(ctx context.Context, d *decision) ([]intents.Input, error) {
	if d.release != nil && len(d.inputs.Inputs) > 0 {
		return r.heldInputs(ctx, d)
	}
	if d.env.Type() == typeTranscript {
		return r.transcript(ctx, d)
	}
	var out []intents.Input
	inline := 0
	for _, from := range catalog.InputsIn(d.row, d.env.DecodedArgs()) {
		in, err := r.resolve(ctx, d, from)
		if err != nil {
			return nil, err
		}
		if seen := d.inputDigest(in.Pointer); seen != "" && seen != in.SHA256 {
			return nil, intents.Refuse(intents.MalformedArgs, "/intent/args/from", "is not what it was when the intent was decided")
		}
		if strings.HasPrefix(in.Ref, "cas://") {
			if _, err := r.content(ctx, d, in); err != nil { // the digest is checked before use
				return nil, err
			}
		}
		if inline += len(in.Value); inline > maxInline {
			return nil, intents.Refuse(intents.MalformedArgs, "/intent/args/inputs", fmt.Sprintf("have more than %d bytes together, not counting files: have scripts work on fewer at once", maxInline))
		}
		out = append(out, in)
	}
	return out, nil
}

// maxInline bounds the bytes of a ticket's inputs that are not in files. In a token they are encoded
// twice, which makes 455 of its 512 KiB.
const maxInline = 256 << 10

// inputDigest is the digest of an input in the intent's decision, or "" if the input did not exist
// then.
func (d *decision) inputDigest(pointer string) string {
	for _, in := range d.inputs.Inputs {
		if in.Pointer == pointer {
			return in.SHA256
		}
	}
	return ""
}

// resolve finds what an intent names: the result of an intent of the same plan step, a file of the
// step, or a blob of the tenant, whose bytes it does not read.
func (r *Router) resolve(ctx context.Context, d *decision, from catalog.NamedInput) (intents.Input, error) {
	in := intents.Input{Pointer: from.Pointer}
	var err error
	switch {
	case strings.HasPrefix(from.Ref, "cas://"):
		err = r.fromBlob(ctx, d, from.Ref, &in)
	case strings.HasPrefix(from.Ref, "sha256:"):
		err = r.fromIntent(ctx, d, from.Ref, &in)
	default:
		err = r.fromFile(ctx, d, from.Ref, &in)
	}
	return in, err
}

// look resolves what an intent names before policy is asked, and reads what policy may see of it.
// What does not exist yet, such as the result of an earlier intent in its batch, policy sees as a
// mark.
func (r *Router) look(ctx context.Context, d *decision) error {
	if d.release != nil {
		return r.lookAtHeld(ctx, d)
	}
	d.inputs.Inputs = nil
	for _, from := range catalog.InputsIn(d.row, d.env.DecodedArgs()) {
		in, err := r.resolve(ctx, d, from)
		var refusal *intents.Refusal
		if errors.As(err, &refusal) {
			in, err = intents.Input{Pointer: from.Pointer}, nil
		}
		if err == nil {
			err = r.show(ctx, d, in)
		}
		if err != nil {
			return err
		}
		d.inputs.Inputs = append(d.inputs.Inputs, intents.HeldInput{Pointer: in.Pointer, Ref: in.Ref, SHA256: in.SHA256, Size: in.Size, Inline: in.Value != nil})
	}
	return nil
}

// lookAtHeld reads what policy may see of the retained inputs of a held intent.
func (r *Router) lookAtHeld(ctx context.Context, d *decision) error {
	for _, h := range d.inputs.Inputs {
		if err := r.show(ctx, d, intents.Input{Pointer: h.Pointer, Ref: h.Ref, SHA256: h.SHA256, Size: h.Size}); err != nil {
			return err
		}
	}
	return nil
}

// show reads an input if the policy in force can read it and it is small.
func (r *Router) show(ctx context.Context, d *decision, in intents.Input) error {
	if in.SHA256 == "" || in.Size >= policies.MaxInputSize || !d.policy.Reads(in.Pointer) {
		return nil
	}
	data, err := r.content(ctx, d, in)
	if err == nil && intents.Digest(data) != in.SHA256 {
		err = fmt.Errorf("the input at %s does not have its digest", in.Pointer)
	}
	if err != nil {
		return err
	}
	if d.inputs.Data == nil {
		d.inputs.Data = map[string][]byte{}
	}
	d.inputs.Data[in.Pointer] = data
	return nil
}

// content reads an input, and checks its digest. It returns nothing of an input that is too large
// for policies to see.
func (r *Router) content(ctx context.Context, d *decision, in intents.Input) ([]byte, error) {
	if in.Value != nil {
		return in.Value, nil
	}
	var f io.ReadCloser
	var err error
	if strings.HasPrefix(in.Ref, "cas://") {
		f, _, err = r.cfg.Blobs.Fetch(ctx, d.env.Principal().Tenant, in.Ref)
	} else {
		f, _, err = r.cfg.Blobs.Open(ctx, r.scopeOf(d).At(in.Step), in.Ref)
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil, noSuchInput()
	}
	if err != nil {
		return nil, err
	}
	small := bytes.Buffer{}
	_, err = io.CopyN(&small, f, policies.MaxInputSize)
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

func (r *Router) scopeOf(d *decision) storage.Scope {
	c := d.env.Context()
	if c.PlanID == "" {
		return storage.TurnScope(d.env.Principal().Tenant, c.TurnID)
	}
	return storage.Scope{Tenant: d.env.Principal().Tenant, Plan: c.PlanID, Revision: c.Revision, Step: c.Step, Ask: c.Ask}
}

func (r *Router) fromFile(ctx context.Context, d *decision, id string, in *intents.Input) error {
	f, info, err := r.cfg.Blobs.Open(ctx, r.scopeOf(d).At(in.Step), id)
	if errors.Is(err, storage.ErrNotFound) {
		return noSuchInput()
	}
	if err != nil {
		return err
	}
	in.Ref, in.SHA256, in.Size = id, info.SHA256, info.Size
	return f.Close()
}

func (r *Router) fromBlob(ctx context.Context, d *decision, ref string, in *intents.Input) error {
	f, size, err := r.cfg.Blobs.Fetch(ctx, d.env.Principal().Tenant, ref)
	if errors.Is(err, storage.ErrNotFound) {
		return noSuchInput()
	}
	if err != nil {
		return err
	}
	in.Ref, in.SHA256, in.Size = ref, strings.TrimPrefix(ref, "cas://"), size
	return f.Close()
}

// fromIntent takes the result of an intent of the same step, or of a node of the same run: its data
// inline, or the file that contains it.
func (r *Router) fromIntent(ctx context.Context, d *decision, id string, in *intents.Input) error {
	pos, step, ok := d.view.IntentOf(d.env.Principal().Tenant, d.env.Context(), id)
	if !ok {
		return noSuchInput()
	}
	if step != d.env.Context().Step {
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
		return intents.Refuse(intents.MalformedArgs, "/intent/args/from", "that intent has no result")
	}
	value, file, err := catalog.DataOf(dup.outcome.Result)
	if err != nil {
		return err
	}
	if file != "" {
		return r.fromFile(ctx, d, file, in)
	}
	in.Value, in.SHA256, in.Size = value, intents.Digest(value), int64(len(value))
	return nil
}
