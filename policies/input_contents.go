package policies

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// MaxInputSize is the size, in bytes, from which policies do not see an input that an intent
// only references: smaller results travel inline.
const MaxInputSize = 50_000

// IDInput denies an intent where a rule reads an input that cannot be shown to it.
const IDInput = "writ.input"

// ErrNotKept says that a policy reads an input whose content is no longer available.
var ErrNotKept = errors.New("policies: the policy reads an input that is not here any more")

// reference is the member of the mark that stands for an input that policies cannot see.
const reference = "writ.reference"

// hiddenInput is an input that a mark stands for.
type hiddenInput struct {
	path []string // below the policy's input
	lost bool     // small enough to be seen, and not available
}

// withInputs are the arguments with every referenced input in place: policies see what the
// executor gets.
func withInputs(decoded any, f *intents.DecisionInputs) (args any, hidden []hiddenInput) {
	named, ok := decoded.(map[string]any)
	if !ok || len(f.Inputs) == 0 {
		return decoded, nil
	}
	named = maps.Clone(named)
	for _, in := range f.Inputs {
		data, there := f.Data[in.Pointer]
		value, shown := shownInput(in, data)
		path := inputPath(in.Pointer)
		if member := path[2]; len(path) == 3 {
			named[member] = value
		} else {
			of, _ := named[member].(map[string]any)
			if of = maps.Clone(of); of == nil {
				of = map[string]any{}
			}
			of[path[3]], named[member] = value, of
		}
		if !shown {
			hidden = append(hidden, hiddenInput{path, in.SHA256 != "" && in.Size < MaxInputSize && !there})
		}
	}
	return named, hidden
}

// ShowArgs are arguments as people see them: the same as policies see.
func ShowArgs(args json.RawMessage, f intents.DecisionInputs) (json.RawMessage, error) {
	decoded, err := schemas.Decode(args)
	if err != nil {
		return nil, err
	}
	decoded, _ = withInputs(decoded, &f)
	return intents.MarshalPlain(decoded)
}

// inputPath is the path of an input for policies.
func inputPath(pointer string) []string {
	return append([]string{"intent", "args"}, strings.SplitN(strings.TrimPrefix(pointer, "/"), "/", 2)...)
}

// shownInput is an input as policies see it: its JSON value, or its text. Content that is too
// large, is not available yet, or could be read differently by two readers is a mark.
func shownInput(in intents.HeldInput, data []byte) (value any, shown bool) {
	mark := map[string]any{"sha256": in.SHA256, "size_bytes": json.Number(strconv.FormatInt(in.Size, 10))}
	if in.SHA256 == "" || in.Size >= MaxInputSize || data == nil || !utf8.Valid(data) {
		return map[string]any{reference: mark}, false
	}
	if text, err := json.Marshal(string(data)); !json.Valid(data) && err == nil {
		data = text
	}
	value, err := schemas.Decode(data)
	if err != nil || intents.Unambiguous(data) != nil {
		return map[string]any{reference: mark}, false
	}
	return value, true
}

// Reads reports whether the tree can read an input at a pointer of the arguments.
func (e *Engine) Reads(pointer string) bool {
	return e.reads.includes(inputPath(pointer))
}

// includes reports whether a value at a path can be read.
func (r *ReadSet) includes(path []string) bool {
	return r.All || slices.ContainsFunc(r.Paths, func(p []string) bool { return overlap(p, path) })
}

// overlap reports whether one of two paths is a prefix of the other.
func overlap(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// DecideIntent is Decide for the Input of an intent, in which marks stand for the parts of its
// inputs that policies cannot see. A rule that reads such a part makes it a denial; the error is
// ErrNotKept if the input was visible once.
func (e *Engine) DecideIntent(ctx context.Context, intent *intents.Envelope, f intents.DecisionInputs) (Result, error) {
	s := newSubject(intent, &f)
	hidden := slices.DeleteFunc(s.hidden, func(u hiddenInput) bool { return !e.reads.includes(u.path) })
	if len(hidden) == 0 {
		return e.decide(ctx, s)
	}
	r, read, err := e.watched(ctx, s.document(), hidden)
	switch {
	case err != nil:
		return r, err
	case slices.ContainsFunc(read, func(u hiddenInput) bool { return u.lost }):
		return Result{}, ErrNotKept
	case len(read) > 0:
		return Result{Deny: []Rule{{ID: IDInput, Reason: "a policy reads the input, which comes by a reference and cannot be shown to it: it has " + strconv.Itoa(MaxInputSize) + " bytes or more, is not there yet, or is neither JSON nor text", Hint: "send the input by value, or a smaller one"}}}, nil
	}
	return r, nil
}

// watched evaluates an input again, and returns the hidden values in it that rules read.
func (e *Engine) watched(ctx context.Context, in map[string]any, hidden []hiddenInput) (Result, []hiddenInput, error) {
	w := &watch{paths: hidden}
	r, _, err := e.evaluate(ctx, func() (ast.Value, error) { return ast.InterfaceToValue(in) }, w)
	return r, w.read, err
}

// watch records which of some paths an evaluation reads, according to its expressions: one that
// reads a member which is not a constant reads all its siblings.
type watch struct {
	paths []hiddenInput
	read  []hiddenInput
}

// Enabled implements topdown.QueryTracer.
func (w *watch) Enabled() bool { return len(w.paths) > 0 }

// Config implements topdown.QueryTracer.
func (w *watch) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent inspects an expression that is about to be evaluated.
func (w *watch) TraceEvent(x topdown.Event) {
	expr, ok := x.Node.(*ast.Expr)
	if !ok || x.Op != topdown.EvalOp {
		return
	}
	reads := &ReadSet{}
	reads.walk(expr)
	w.paths = slices.DeleteFunc(w.paths, func(u hiddenInput) bool {
		if !reads.includes(u.path) {
			return false
		}
		w.read = append(w.read, u)
		return true
	})
}
