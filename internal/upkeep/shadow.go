package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"aob.dev/writ/audit"
	"aob.dev/writ/executors"
	"aob.dev/writ/executors/python"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
)

// Shadow runs recorded scripts again with the handler that runs orders, in the
// same kind of sandbox. What the handler would keep goes to a directory that Close
// removes: nothing is added to the record or its blobs.
type Shadow struct {
	dir     string
	sandbox *sandbox.Sandbox
	exec    executors.Handler
	blobs   storage.Blobs // that inputs and kept scripts are read from; nil: none
}

// OpenShadow opens a sandbox whose runtime is in a data directory; empty: in a
// directory of this user's. blobs are those of the record; nil where only a
// bundle is at hand.
func OpenShadow(ctx context.Context, data string, blobs storage.Blobs) (*Shadow, error) {
	cfg := sandbox.Config{Workers: -1}
	if data != "" {
		cfg.Dir = datadir.Runtime(data)
	}
	dir, err := os.MkdirTemp("", "writ-shadow-")
	if err != nil {
		return nil, err
	}
	s := &Shadow{dir: dir, blobs: blobs}
	scratch, err := blobdir.Open(dir)
	if err == nil {
		s.sandbox, err = sandbox.Open(ctx, cfg)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s.exec = python.Handlers(s.sandbox, overlay{scratch, blobs})["exec_python"]
	return s, nil
}

// Close ends the sandbox and removes what the runs wrote.
func (s *Shadow) Close() error { return errors.Join(s.sandbox.Close(), os.RemoveAll(s.dir)) }

// Run is an audit.Runner.
func (s *Shadow) Run(ctx context.Context, r audit.Run) (json.RawMessage, error) {
	o := &executors.Order{Type: "exec_python", Args: r.Args, Ticket: intents.Ticket{
		Actor: intents.Principal{Tenant: r.Tenant}, Obligations: r.Duties, Position: r.Position,
		Scope: &intents.TaskScopeClaim{Plan: r.Step.Plan, Revision: r.Step.Revision, Step: r.Step.Step},
	}}
	if s.blobs != nil && r.ScriptHash != "" {
		ref := "cas://" + r.ScriptHash
		if err := intact(s.blobs.Fetch(ctx, r.Tenant, ref)); err != nil {
			return nil, audit.Mismatch("the script kept as " + ref + " " + missingOrChanged(err))
		}
	}
	o.Ticket.Inputs = r.Inputs
	for _, in := range r.Inputs {
		if err := s.check(ctx, r, in); err != nil {
			return nil, err
		}
	}
	res, err := s.exec(ctx, o)
	var f *executors.Failure
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &f) && f.Code == intents.ExecutorTimeout:
		return nil, audit.NotExecutable("it did not end in time on this machine")
	case errors.As(err, &f) && f.Code == intents.PolicyDenied:
		return nil, audit.NotExecutable("a policy asks for a stronger sandbox than this machine has")
	case errors.As(err, &f) && f.Retryable:
		return nil, audit.NotExecutable("the sandbox cannot run it on this machine")
	case errors.As(err, &f):
		return nil, audit.Mismatch("the script had a result, and now fails: " + f.Error())
	case err != nil:
		return nil, err
	}
	return json.Marshal(res.Value)
}

// check reads an input once, so that a missing or changed input is distinguished from
// a run that fails.
func (s *Shadow) check(ctx context.Context, r audit.Run, in intents.Input) error {
	if in.Ref == "" {
		return nil
	}
	if s.blobs == nil {
		return audit.NotExecutable("its input is a file or blob, which no bundle holds: name the data directory")
	}
	if in.Ref == "cas://"+in.SHA256 {
		err := intact(s.blobs.Fetch(ctx, r.Tenant, in.Ref))
		if err != nil {
			return audit.Mismatch("its input " + in.Ref + " " + missingOrChanged(err))
		}
		return nil
	}
	f, info, err := s.blobs.Open(ctx, r.Step, in.Ref)
	if errors.Is(err, storage.ErrNotFound) {
		return audit.NotExecutable("its input was a temporary file of its step, which ended with the plan")
	}
	if err = intact(f, 0, err); err != nil || in.SHA256 != "" && info.SHA256 != in.SHA256 {
		return audit.Mismatch("its input " + in.Ref + " is not what its digest says")
	}
	return nil
}

// intact reads a blob to its end, where its digest is checked.
func intact(r io.ReadCloser, _ int64, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

func missingOrChanged(err error) string {
	if errors.Is(err, storage.ErrNotFound) {
		return "is missing"
	}
	return "is not what its digest says"
}

// overlay writes to scratch and reads what is not there from below, which may be nil.
type overlay struct {
	storage.Blobs
	below storage.Blobs
}

// Open implements storage.Blobs.
func (o overlay) Open(ctx context.Context, s storage.Scope, id string) (io.ReadCloser, storage.File, error) {
	if o.below == nil {
		return o.Blobs.Open(ctx, s, id)
	}
	return o.below.Open(ctx, s, id)
}

// Fetch implements storage.Blobs.
func (o overlay) Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	if o.below == nil {
		return o.Blobs.Fetch(ctx, tenant, ref)
	}
	return o.below.Fetch(ctx, tenant, ref)
}
