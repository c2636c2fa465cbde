package agentic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// extract has the model write a script over data and runs it in the sandbox,
// until the output is what return_spec says: sample, script, run,
// check. The data itself never reaches the model.
func (w *worker) extract(ctx context.Context, m *material) (string, error) {
	in := model.ScriptInput{
		Task: w.req.Step.Task, UserTask: w.req.UserTask, Schema: w.schema, DataSchema: m.schema,
		ReturnSpec: w.req.Step.ReturnSpec,
	}
	if err := w.sample(ctx, m, &in); err != nil {
		return "", err
	}
	for range maxScripts {
		out, _, err := model.Think[model.ScriptInput, model.ScriptOutput](ctx, w.cfg.Model, model.WriteScript, model.Instructions(model.WriteScript, w.req.Soul), in)
		if err != nil {
			return "", err
		}
		id, wrong, err := w.python(ctx, out.Script, m)
		if err != nil {
			return "", err
		}
		if wrong == "" {
			return w.remember(ctx, id)
		}
		in.Error = wrong
	}
	return "", &stopError{"no script gave the result that return_spec asks for: " + in.Error, "ask for less, or for another shape"}
}

// sample shows the model the first lines: of a file by read_lines, of inline
// data its own text.
func (w *worker) sample(ctx context.Context, m *material, in *model.ScriptInput) error {
	in.Format = "json"
	if m.ref == nil {
		in.Sample = []string{cut(string(m.inline), catalog.MaxLine)}
		return nil
	}
	var got catalog.ReadLinesResult
	if _, err := w.order(ctx, "read_lines", catalog.ReadLines{FileID: m.ref.FileID, Start: 0, N: catalog.SampleLines}, &got); err != nil {
		return err
	}
	in.Sample = got.Lines
	if oneDocumentALine(got) {
		in.Format = "jsonl"
	}
	return nil
}

// oneDocumentALine says that each of the first two lines is a JSON document.
func oneDocumentALine(got catalog.ReadLinesResult) bool {
	return len(got.Lines) > 1 && json.Valid([]byte(got.Lines[0])) && json.Valid([]byte(got.Lines[1]))
}

// python runs a script and says what is wrong with its output; an error is
// about the task, not about the script.
func (w *worker) python(ctx context.Context, script string, m *material) (id, wrong string, err error) {
	var got catalog.ExecPythonResult
	a, err := w.order(ctx, "exec_python", catalog.ExecPython{Script: script, From: m.from()}, &got)
	var refused *OrderError
	switch {
	case errors.As(err, &refused) && scriptFault(refused.Answer.Code):
		return "", fault(refused), nil
	case err != nil:
		return "", "", err
	}
	if got.Reference != nil {
		return a.IntentID, "", nil // too large to check here; write_memory does
	}
	if v := w.check.ValidateWithin(ctx, got.Output); len(v) > 0 {
		return "", fmt.Sprintf("the output does not match return_spec: at %q %s", v[0].Pointer, v[0].Reason), nil
	}
	return a.IntentID, "", nil
}

func scriptFault(c intents.Code) bool {
	switch c {
	case intents.ExecutorFailed, intents.ExecutorTimeout, intents.OversizedOutput, intents.SchemaInvalid:
		return true
	default:
		return false
	}
}

// fault is what the script ended with: the code, the reason and the traceback.
func fault(e *OrderError) string {
	s := string(e.Answer.Code) + ": " + e.Answer.Reason
	if o := e.Answer.Outcome; o != nil && len(o.Result) > 0 {
		s += "\n" + cut(string(o.Result), 4000)
	}
	return s
}
