package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
)

// A task may be killed between any two intents, and a task whose intent waits for approval ends
// before the decision. The next task of the step continues from the record: its model reads the
// calls that were made with their results. A call that was never signed never happened.

// callKey is the context key of the call to which an intent belongs.
type callKey struct{}

// atCall assigns the intents under a context to a call.
func atCall(ctx context.Context, call string) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// toolKey is the context key of the name of the call's tool.
type toolKey struct{}

func callOf(ctx context.Context) string {
	call, _ := ctx.Value(callKey{}).(string)
	return call
}

// pageOfCalls bounds the calls that one transcript.get may name.
const pageOfCalls = 20

// resume begins the conversation with the calls of earlier tasks.
func (w *worker) resume(ctx context.Context) error {
	calls, err := w.transcript(ctx)
	if err != nil {
		return err
	}
	calls = slices.DeleteFunc(calls, func(c catalog.TranscriptCall) bool { return c.Code == intents.Abandoned }) // it had no effect
	again := w.resumeAsks(ctx, calls)
	var errs []error
	for i, c := range calls {
		w.submitter.begin(intents.Spec{Type: c.Type, Args: c.Args}, c.Occurrence+1)
		if i+1 < len(calls) && calls[i+1].Call == c.Call {
			continue // it had no effect and was signed again
		}
		c, waits, err := w.edited(ctx, c)
		if err != nil {
			return err
		}
		if waits == nil {
			waits = again[c.Call]
		}
		errs = append(errs, w.recall(c, waits))
	}
	w.loop.requests, w.loop.before = w.loop.replies, w.req.Tokens // limits are of the step, not of each of its tasks
	return cmp.Or(errs...)
}

// transcript reads the calls in their order. It waits for calls that are still executing: a model
// that does not know how a call ended might repeat it.
func (w *worker) transcript(ctx context.Context) ([]catalog.TranscriptCall, error) {
	var out []catalog.TranscriptCall
	for page := range slices.Chunk(w.req.Calls, pageOfCalls) {
		ids := make([]string, len(page))
		for i, c := range page {
			ids[i] = c.IntentID
		}
		var got catalog.TranscriptGetResult
		for open := true; open; {
			if _, err := w.submit(ctx, "transcript.get", catalog.TranscriptGet{IntentIDs: ids}, &got); err != nil {
				return nil, err
			}
			if open = slices.ContainsFunc(got.Calls, func(c catalog.TranscriptCall) bool { return c.Status == "open" }); open {
				if err := clock.Sleep(ctx, time.Second); err != nil {
					return nil, err
				}
			}
		}
		out = append(out, got.Calls...)
	}
	slices.SortStableFunc(out, func(a, b catalog.TranscriptCall) int {
		ra, ia := position(a.Call)
		rb, ib := position(b.Call)
		return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(ia, ib))
	})
	return out, nil
}

// position returns a call's reply and its place in it.
func position(call string) (reply, index int) {
	first, second, _ := strings.Cut(call, ".")
	reply, _ = strconv.Atoi(first) // guaranteed by the envelope's schema
	index, _ = strconv.Atoi(second)
	return reply, index
}

// recall puts one call with its result into the conversation: the result of again, if the call
// was repeated. The error is one that ends the run.
func (w *worker) recall(c catalog.TranscriptCall, again func() (any, error)) error {
	l := w.loop
	reply, index := position(c.Call)
	name, args := w.recalled(c)
	if name == "" {
		l.replies = reply
		return nil
	}
	call := model.Call{ID: fmt.Sprintf("call_%d_%d", reply, index), Name: name, Arguments: string(compact(args))}
	if reply != l.replies { // the first of its reply
		l.replies, l.recalled = reply, len(l.req.Messages)
		l.req.Messages = append(l.req.Messages, model.Message{Role: model.RoleAssistant})
	}
	at := &l.req.Messages[l.recalled]
	at.Calls = append(at.Calls, call)
	l.labels++
	var ends []error
	if again == nil {
		result, err := w.result(c, fmt.Sprintf("r%d", l.labels))
		l.answer(call, result, err)
		l.note(call, err)
	} else {
		result, err := again()
		l.answer(call, result, err)
		l.note(call, err)
		ends = append(ends, err)
	}
	if equal := intents.Fingerprint(intents.Spec{Type: c.Type, Args: c.Args}, "", intents.Context{}); c.Status == "done" || c.Status == "held" {
		w.before[equal] = append(w.before[equal], c)
	}
	return cmp.Or(fatal(ends), held(ends))
}

// recalled returns the tool and the arguments of a call, as the model wrote it.
func (w *worker) recalled(c catalog.TranscriptCall) (tool string, args any) {
	switch c.Type {
	case "skill.call":
		var a catalog.SkillCall
		if i := slices.Index(w.req.Step.Skills, decoded(c.Args, &a).Skill); i >= 0 {
			w.showFirst([]catalog.SkillHit{{Name: a.Skill}})
			return w.loop.tools[i].Name, a.Input
		}
	case "exec_python":
		var a catalog.ExecPython
		return execPythonTool.Name, execPythonArgs{Script: decoded(c.Args, &a).Script, From: w.labelOf(a.From), Inputs: slices.Sorted(maps.Keys(a.Inputs))}
	case "read_lines":
		var a catalog.ReadLines
		return readLinesTool.Name, readLinesArgs{w.labelOf(decoded(c.Args, &a).FileID), a.Start, a.N}
	case intents.TypeAgentAsk:
		return w.askCall(decoded(c.Args, &catalog.AgentAsk{}))
	case "write_memory":
		var a catalog.WriteMemory
		return writeMemoryTool.Name, writeMemoryArgs{From: w.labelOf(decoded(c.Args, &a).From), Data: a.Data, Notes: a.Notes}
	case "action":
		return actionTool.Name, c.Args
	}
	return catalog.Written(c.Type, c.Args)
}

// decoded reads the recorded value; members hidden by a policy stay zero.
func decoded[T any](raw json.RawMessage, v *T) *T {
	_ = json.Unmarshal(raw, v)
	return v
}

// labelOf returns the label of data that an intent of an earlier task named. The input of the
// step was read by another intent then.
func (w *worker) labelOf(from string) string {
	if from == "" {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for label, m := range w.material {
		if m.intentID == from || m.from() == from {
			return label
		}
	}
	return inputLabel
}

// result returns the result of a call of an earlier task.
func (w *worker) result(c catalog.TranscriptCall, label string) (any, error) {
	switch {
	case c.Type == intents.TypeAgentAsk:
		return w.earlierResult(c), nil
	case c.Status == "held":
		return nil, w.waits(c)
	case c.Status == string(intents.StatusIndetermined):
		return map[string]string{"status": "unknown"}, nil
	case c.Status != "done":
		return nil, &IntentError{c.Type, &intents.Answer{IntentID: c.IntentID, Code: c.Code, Reason: c.Reason, Outcome: &intents.Outcome{Result: c.Result}}}
	case c.Result == nil:
		return map[string]string{"status": "done", "reason": c.Reason}, nil // as an operator found out
	}
	switch c.Type {
	case "skill.call", "exec_python":
		var got catalog.SkillCallResult // both have the same members
		if json.Unmarshal(c.Result, &got) == nil {
			return w.keptAs(got.Status, label, c.IntentID, got.Output, got.Reference), nil
		}
	case "memory.query":
		return w.found(label, c.IntentID, c.Result), nil
	case "kb.search":
		return w.keep(label, c.IntentID, c.Result, nil), nil
	case "skill.find":
		var got catalog.SkillFindResult
		w.showFirst(decoded(c.Result, &got).Skills)
	case "action":
		return actionShown, nil
	case "write_memory":
		var got catalog.WriteMemoryResult
		w.key = decoded(c.Result, &got).Key
	}
	return c.Result, nil
}

// waits returns the answer to a call whose intent waits for approval.
func (w *worker) waits(c catalog.TranscriptCall) error {
	return &IntentError{c.Type, &intents.Answer{IntentID: c.IntentID, Code: intents.ApprovalRequired, Reason: cmp.Or(c.Reason, "it waits for approval"), Approval: bus.ApprovalURL(c.IntentID)}}
}

// earlierCall answers a repeated call of a tool with effects that an earlier task has made, each
// call once: a model that continues from a record may repeat what was done.
func (w *worker) earlierCall(typ string, args any, label string) (result any, err error, ok bool) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err, true
	}
	equal := intents.Fingerprint(intents.Spec{Type: typ, Args: raw}, "", intents.Context{})
	w.mu.Lock()
	before := w.before[equal]
	if len(before) > 0 {
		w.before[equal] = before[1:]
	}
	w.mu.Unlock()
	if len(before) == 0 {
		return nil, nil, false
	}
	result, err = w.result(before[0], label)
	if done, is := result.(labelledResult); is {
		done.AlreadyDone = true
		result = done
	}
	return result, err, true
}
