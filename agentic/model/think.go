package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Think has m answer one question and returns its validated output. The output
// must satisfy the schema of the purpose; a model that breaks it is told what
// was wrong and asked once more, and then the error wraps [ErrOutput]. The
// usage is that of both answers, also when there is an error, which is always
// an *Error.
func Think[In, Out any](ctx context.Context, m Model, purpose Purpose, instructions string, in In) (Out, Usage, error) {
	var out Out
	var used Usage
	input, err := json.Marshal(in)
	if err != nil {
		return out, used, &Error{Reason: "encode the input of " + string(purpose), Err: err}
	}
	req := Request{Purpose: purpose, Instructions: instructions, Input: input, Schema: OutputSchema(purpose)}
	wrong, err := askOnce(ctx, m, req, &used, &out)
	if err == nil && len(wrong) > 0 {
		req.Instructions += "\n" + correction(wrong)
		out = *new(Out)
		wrong, err = askOnce(ctx, m, req, &used, &out)
	}
	if err == nil && len(wrong) > 0 {
		err = &Error{Reason: fmt.Sprintf("%s answered %s twice with what cannot be used (%s)", m.Name(), purpose, strings.Join(wrong, "; ")), Err: ErrOutput}
	}
	if err != nil {
		out = *new(Out) // nothing of an answer that broke its schema
	}
	return out, used, err
}

// askOnce completes req once and decodes a valid output into out; an output that
// cannot be used is no error but a list of what is wrong with it.
func askOnce(ctx context.Context, m Model, req Request, used *Usage, out any) (wrong []string, err error) {
	all, err := compiledOutputs()
	if err != nil {
		return nil, &Error{Reason: "compile schemas", Err: err}
	}
	s, ok := all[req.Purpose]
	if !ok {
		return nil, &Error{Reason: fmt.Sprintf("there is no thought named %q", req.Purpose)}
	}
	reply, err := m.Complete(ctx, req)
	used.InputTokens += reply.Usage.InputTokens
	used.OutputTokens += reply.Usage.OutputTokens
	used.Latency += reply.Usage.Latency
	switch {
	case errors.Is(err, ErrOutput):
		return []string{"/: is not JSON"}, nil
	case err != nil:
		return nil, err
	}
	if wrong := outputViolations(s, reply.Output); len(wrong) > 0 {
		return wrong, nil
	}
	if err := json.Unmarshal(reply.Output, out); err != nil {
		return []string{"/: a number is out of range"}, nil //nolint:nilerr // all that the schemas allow and the types do not
	}
	return nil, nil
}

// correction tells a model what was wrong, in the words of the schema.
func correction(wrong []string) string {
	return "Your previous answer could not be used:\n- " + strings.Join(wrong, "\n- ") + "\nAnswer again, completely, and satisfy the schema.\n"
}
