// Package python is the executor of exec_python: one script, one run in the sandbox, one JSON
// document. The input is streamed from blobs into the sandbox and never buffered here; a large
// output becomes a file. Script and output are hostile: text of a failed run goes to the caller as
// details, never into a reason.
package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/storage"
)

// Name of the executor.
const Name = "python"

// Workers is the number of intents that the executor accepts at once. Most of them wait for a turn
// in the sandbox, which is fair among tenants; intents that waited on the bus would be
// served in the order of their arrival.
const Workers = 1024

// Handlers of the executor. They have no state; a run has no effect but the script, which is stored
// under its digest.
func Handlers(runner sandbox.Runner, blobs storage.Blobs) map[string]executors.Handler {
	p := python{runner, blobs}
	return map[string]executors.Handler{"exec_python": executors.WithArgs(p.exec)}
}

// Refusing are the handlers where there is no sandbox, and why.
func Refusing(why string) map[string]executors.Handler {
	return map[string]executors.Handler{"exec_python": func(context.Context, *executors.Intent) (*executors.Result, error) {
		return nil, executors.Fail(intents.ExecutorFailed, "scripts cannot run here: "+visible.Cut(why, maxWhy))
	}}
}

// maxWhy bounds the reason, in bytes.
const maxWhy = 1024

type python struct {
	runner sandbox.Runner
	blobs  storage.Blobs
}

// exec stores the script, runs it and returns its output.
func (p python) exec(ctx context.Context, o *executors.Intent, args catalog.ExecPython) (*executors.Result, error) {
	if err := strongEnough(p.runner.Driver(), o.Driver()); err != nil {
		return nil, err
	}
	row, _ := catalog.Builtin().Lookup(o.Type) // it came with a ticket for the type
	job := sandbox.Job{
		Tenant: o.Ticket.Actor.Tenant, Queue: row.MaxQueue, Time: row.MaxRun,
		Script: args.Script, Limits: sandbox.Limits{Wall: time.Duration(args.TimeoutSec) * time.Second},
	}
	log := executors.NewLineWriter(o, intents.LevelInfo, "python:stderr")
	job.Stderr = log
	data, given, err := p.input(ctx, o, args)
	if err != nil {
		return nil, err
	}
	var in rows
	if given {
		defer data.Close()
		job.Input, job.InputSize = io.TeeReader(data, &in), data.Size
	}
	if err := p.keep(ctx, o, args.Script); err != nil {
		return nil, err
	}
	ctx, cancel := inTime(ctx)
	defer cancel()
	res, err := p.runner.Run(ctx, job)
	log.End()
	if res.Error != "" {
		for line := range strings.Lines(res.Error) {
			o.Write(intents.LevelError, "python:traceback", strings.TrimRight(line, "\n"), nil)
		}
	}
	result, err := p.finish(ctx, o, res, err)
	return withEvent(result, err, executed(res, in.count()), res.Outcome != "")
}

// reportTime is reserved at the end of an intent's time to report a run that the deadline ends.
const reportTime = 500 * time.Millisecond

// inTime is a context that ends shortly before ctx does, while there is time left
// to report the run.
func inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-reportTime))
}

// withEvent adds the event of a run to the outcome of its intent. Every run that a sandbox began
// has one, however the run and its result ended.
func withEvent(result *executors.Result, err error, event intents.ReportedEvent, ran bool) (*executors.Result, error) {
	if !ran {
		return result, err
	}
	events := []intents.ReportedEvent{event}
	if err == nil {
		result.Events = events
		return result, nil
	}
	var f *executors.Failure
	if !errors.As(err, &f) {
		f = executors.Unavailable("the executor failed; its log says why", err)
	}
	f.Events = events
	return nil, f
}

// finish makes the intent's outcome from the result of a run.
func (p python) finish(ctx context.Context, o *executors.Intent, res sandbox.Result, err error) (*executors.Result, error) {
	if err != nil {
		return nil, broken(err)
	}
	if f := failed(res); f != nil {
		return nil, f
	}
	doc, f := document(res.Output)
	if f != nil {
		return nil, f
	}
	scope, err := o.Scope()
	if err != nil {
		return nil, err
	}
	output, ref, err := executors.InlineOrFile(ctx, o, p.blobs, scope, executors.Content{JSON: doc})
	if err != nil {
		return nil, err
	}
	return &executors.Result{Value: catalog.ExecPythonResult{Output: output, Reference: ref}}, nil
}

// broken is the failure of a run without a result: the sandbox or the input failed, not
// the script, or the run was ended from outside. The run had no effect.
func broken(err error) error {
	switch {
	case errors.Is(err, sandbox.ErrClosed), errors.Is(err, context.Canceled):
		return executors.Fail(intents.Abandoned, "the executor is stopping")
	case errors.Is(err, sandbox.ErrBusy):
		return executors.Fail(intents.ExecutorTimeout, "too many scripts are waiting: this one was not started; send it again later")
	case errors.Is(err, context.DeadlineExceeded):
		return executors.Fail(intents.ExecutorTimeout, "the script did not end in its time, which includes the start of its sandbox")
	case errors.Is(err, sandbox.ErrScript):
		return executors.Fail(intents.MalformedArgs, "the script is too large for the sandbox")
	case errors.Is(err, sandbox.ErrInputSize):
		return executors.Fail(intents.MalformedArgs, "the input is too large for the sandbox")
	}
	return executors.Unavailable("the sandbox cannot run scripts now", err)
}

// strongEnough refuses an intent whose policy requires a stronger driver than the one in
// use.
func strongEnough(have, wanted string) error {
	if wanted == "" {
		return nil
	}
	strongest := sandbox.DriverNames()
	i, j := slices.Index(strongest, have), slices.Index(strongest, wanted)
	if i < 0 || j < 0 || i > j {
		return executors.Fail(intents.PolicyDenied, "a policy asks for a stronger sandbox than this machine has")
	}
	return nil
}

// keep stores the script under its digest before it runs, so that the hash in the report always
// names a blob that an auditor can read.
func (p python) keep(ctx context.Context, o *executors.Intent, script string) error {
	_, _, err := p.blobs.Keep(ctx, o.Ticket.Actor.Tenant, strings.NewReader(script))
	return executors.Store(err)
}

// runDetails are the details of a failed run for its caller. Error is the traceback,
// reduced to lines of the script: the caller wrote it and has to correct it.
type runDetails struct {
	Outcome string `json:"outcome"`
	Limit   string `json:"limit,omitempty"` // the one that ended it
	Error   string `json:"error,omitempty"`
}

// failed is the failure of a run that did not end well, else nil.
func failed(res sandbox.Result) *executors.Failure {
	var f *executors.Failure
	switch res.Outcome {
	case sandbox.OK:
		return nil
	case sandbox.Timeout:
		f = executors.Fail(intents.ExecutorTimeout, "the script did not end in time")
		f.Retryable = false // the same script takes as long again
	case sandbox.OversizedOutput:
		f = executors.Fail(intents.OversizedOutput, "the script printed more than 500,000 bytes: print less")
	case sandbox.Memory:
		f = executors.Fail(intents.ExecutorFailed, "the script exceeded its memory limit")
	case sandbox.Policy:
		f = executors.Fail(intents.ExecutorFailed, "the script made a forbidden system call")
	case sandbox.ScriptError:
		f = executors.Fail(intents.ExecutorFailed, "the script failed: see its traceback")
	case sandbox.Crash:
		fallthrough
	default:
		f = executors.Fail(intents.ExecutorFailed, "the script crashed")
	}
	return f.WithDetails(runDetails{string(res.Outcome), string(res.Limit), res.Error})
}

// document is the one JSON document that a script must print.
func document(output []byte) (json.RawMessage, *executors.Failure) {
	dec := json.NewDecoder(bytes.NewReader(output))
	var doc json.RawMessage
	err := dec.Decode(&doc)
	if err == nil {
		err = intents.Unambiguous(doc) // two readers must not understand it differently
		if _, next := dec.Token(); !errors.Is(next, io.EOF) {
			err = errors.New("more follows after the first document")
		}
	}
	if err == nil {
		return doc, nil
	}
	f := executors.Fail(intents.ExecutorFailed, "the script did not print exactly one JSON document")
	return nil, f.WithDetails(runDetails{Outcome: "not_json", Error: err.Error()})
}

// executed is the event of every run, however it ended.
func executed(res sandbox.Result, inputRows int) intents.ReportedEvent {
	var out rows
	_, _ = out.Write(res.Output) // never fails
	return executors.NewEvent("python_script.executed", map[string]any{
		"script_hash": "sha256:" + res.ScriptSHA256, "driver": res.Driver, "python": res.Python,
		"input_rows": inputRows, "output_rows": out.count(), "input_bytes": res.InputBytes, "output_bytes": len(res.Output),
		"queued_ms": res.Queued.Milliseconds(), "duration_ms": res.Duration.Milliseconds(), "exit_code": res.ExitCode,
		"outcome": string(res.Outcome), "limit": string(res.Limit),
	})
}
