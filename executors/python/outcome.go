package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/intents"
)

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
