package router

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// holdInputs resolves the inputs of an intent that is being held and stores their bytes under their
// digest: what people approve is what is executed, even if the file or step that it came from
// changes. An intent whose input is missing is refused, not held.
//
// Crash after it: blobs that no record names remain.
func (r *Router) holdInputs(ctx context.Context, x *execution) error {
	in, err := r.inputs(ctx, &x.decision)
	var refusal *intents.Refusal
	if errors.As(err, &refusal) {
		x.Approvers, x.Hold = nil, nil
		x.refuse(refusal)
		return nil
	}
	if err != nil {
		return err
	}
	x.inputs.Inputs = nil
	for _, one := range in {
		kept, err := r.keepInput(ctx, &x.decision, one)
		if err != nil {
			return err
		}
		x.inputs.Inputs = append(x.inputs.Inputs, kept)
	}
	return nil
}

func (r *Router) keepInput(ctx context.Context, d *decision, in intents.Input) (intents.HeldInput, error) {
	held := intents.HeldInput{Pointer: in.Pointer, Ref: in.Ref, SHA256: in.SHA256, Size: in.Size, Inline: in.Value != nil}
	if strings.HasPrefix(in.Ref, "cas://") {
		return held, nil
	}
	var from io.Reader = bytes.NewReader(in.Value)
	if in.Value == nil {
		f, _, err := r.cfg.Blobs.Open(ctx, r.scopeOf(d).At(in.Step), in.Ref)
		if err != nil {
			return held, err
		}
		defer f.Close()
		from = f
	}
	var err error
	held.Ref, held.Size, err = r.cfg.Blobs.Keep(ctx, d.env.Principal().Tenant, from)
	if errors.Is(err, storage.ErrQuota) || errors.Is(err, storage.ErrFull) {
		return held, intents.Refuse(intents.Overloaded, "", "there is no room to keep the input until people have approved")
	}
	held.SHA256 = strings.TrimPrefix(held.Ref, "cas://")
	return held, err
}

// heldInputs returns the inputs of a released intent: the bytes from when it was held.
func (r *Router) heldInputs(ctx context.Context, d *decision) ([]intents.Input, error) {
	var out []intents.Input
	for _, h := range d.inputs.Inputs {
		in := intents.Input{Pointer: h.Pointer, Ref: h.Ref, SHA256: h.SHA256, Size: h.Size}
		f, _, err := r.cfg.Blobs.Fetch(ctx, d.env.Principal().Tenant, h.Ref)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, noSuchInput()
		}
		if err != nil {
			return nil, err
		}
		var value bytes.Buffer
		to := io.Discard
		if h.Inline {
			to = &value
		}
		_, err = io.Copy(to, f) // the digest is checked before use
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		if h.Inline {
			in.Ref, in.Value = "", value.Bytes()
		}
		out = append(out, in)
	}
	return out, nil
}
