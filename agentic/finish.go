package agentic

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tidwall/sjson"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// A call of a step whose result is that of the step ends it: the member finish, which every tool
// of an executor with a result takes, saves the request that would only name the result.

const finishMember = "finish"

// finishSchema is the member in the schema that a model reads.
const finishSchema = `{"type":"boolean","description":"true: the result of this call is the result of the step; members that return_schema does not have are dropped"}`

// finishable offers the member in a tool, unless its schema has one of that name.
func finishable(t *tool) *tool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(t.Schema, &s) != nil || s.Properties[finishMember] != nil {
		return t
	}
	if schema, err := sjson.SetRawBytes(t.Schema, "properties."+finishMember, []byte(finishSchema)); err == nil {
		t.Schema, t.finishes = schema, true
	}
	return t
}

// takeFinish separates the member from the arguments of a call.
func takeFinish(args json.RawMessage) (rest json.RawMessage, finish bool) {
	var a map[string]json.RawMessage
	if json.Unmarshal(args, &a) != nil || a[finishMember] == nil {
		return args, false
	}
	_ = json.Unmarshal(a[finishMember], &finish)
	if rest, err := sjson.DeleteBytes(args, finishMember); err == nil {
		return rest, finish
	}
	return args, false
}

// notFinal is the result of a call that was to end its step, and cannot.
type notFinal struct {
	labelledResult
	NotFinished []string `json:"not_finished"` // why
	RetryAfter  int      `json:"retry_after_sec,omitempty"`
}

// finishWith stores the result of a call as the result of the step. If that is refused, as when it is
// not what the step must return, the model reads why, with the result. The error is not that of
// the call, which was made: it ends the run.
func (w *worker) finishWith(ctx context.Context, result any) (any, error) {
	r, ok := result.(labelledResult)
	if !ok {
		return result, nil
	}
	args := writeMemoryArgs{From: r.Label}
	if r.Result != nil {
		if data := projected(w.schema, r.Result); string(data) != string(r.Result) {
			args = writeMemoryArgs{Data: data}
		}
	}
	_, err := w.remember(ctx, "", args)
	wrong, refused := (*mistake)(nil), (*IntentError)(nil)
	switch {
	case errors.As(err, &wrong):
		return notFinal{r, wrong.violations, 0}, nil
	case errors.As(err, &refused) && refused.Answer.Code != intents.ApprovalRequired && reportable(refused.Answer.Code):
		return notFinal{r, []string{err.Error()}, waitOf(refused.Answer)}, nil
	}
	return result, err
}

// projected returns a value without the members that a schema does not have. What is not JSON, or
// is of another form, stays: the schema judges it.
func projected(schema, value json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Items      json.RawMessage            `json:"items"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return value
	}
	var members map[string]json.RawMessage
	var elements []json.RawMessage
	var out any
	switch {
	case s.Properties != nil && json.Unmarshal(value, &members) == nil && members != nil:
		kept := make(map[string]json.RawMessage)
		for name, of := range s.Properties {
			if v, ok := members[name]; ok {
				kept[name] = projected(of, v)
			}
		}
		out = kept
	case s.Items != nil && json.Unmarshal(value, &elements) == nil && elements != nil:
		for i := range elements {
			elements[i] = projected(s.Items, elements[i])
		}
		out = elements
	default:
		return value
	}
	return compact(out)
}

// answerMember is the member of write_memory that has the answer to the user, in the only step of a
// plan: a step that returns a text returns the answer.
func answerMember(s catalog.PlanStep) string {
	if s.ReturnSpec.Shape == "string" {
		return "data"
	}
	return "answer"
}

// rememberTool is write_memory for a step: its schema is the step's. takesAnswer: it takes the answer
// to the user too.
func rememberTool(returns json.RawMessage, takesAnswer bool) model.Tool {
	t := writeMemoryTool
	if schema, err := sjson.SetRawBytes(t.Schema, "properties.data", returns); err == nil {
		t.Schema = schema
	}
	if takesAnswer {
		if schema, err := sjson.SetRawBytes(t.Schema, "properties.answer", []byte(answerSchema)); err == nil {
			t.Schema = schema
		}
	}
	return t
}

const answerSchema = `{"type":"string","minLength":1,"maxLength":32768,"description":"the whole answer to the user, in the language of the request: only what results show, rows as a Markdown table"}`
