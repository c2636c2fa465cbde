package policies

import (
	"bytes"
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
)

// MaxSeen is from which size on policies do not see an input that an intent only names, in
// bytes: smaller results travel inline.
const MaxSeen = 50_000

// IDInput denies an intent where a rule reads an input that cannot be shown to it.
const IDInput = "writ.input"

// ErrNotKept says that a policy reads an input whose content is not at hand any more.
var ErrNotKept = errors.New("policies: the policy reads an input that is not here any more")

// reference is the member of the mark that stands for an input that policies cannot see.
const reference = "writ.reference"

// unseen is an input that a mark stands for.
type unseen struct {
	path []string // below the policy's input
	lost bool     // small enough to be seen, and not at hand
}

// given are the arguments with every input that they only name in its place: policies see
// what the executor gets.
func given(decoded any, f intents.Facts) (args any, hidden []unseen) {
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
			hidden = append(hidden, unseen{path, in.SHA256 != "" && in.Size < MaxSeen && !there})
		}
	}
	return named, hidden
}

// Shown are arguments as people are shown them: as policies see them.
func Shown(args json.RawMessage, f intents.Facts) (json.RawMessage, error) {
	var decoded any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&decoded); err != nil {
		return nil, err
	}
	decoded, _ = given(decoded, f)
	return intents.MarshalPlain(decoded)
}

// inputPath is where policies find an input.
func inputPath(pointer string) []string {
	return append([]string{"intent", "args"}, strings.SplitN(strings.TrimPrefix(pointer, "/"), "/", 2)...)
}

// shownInput is an input as policies see it: its JSON value, or its text. What is too large,
// is not there yet, or two readers may take for different values is a mark.
func shownInput(in intents.HeldInput, data []byte) (value any, shown bool) {
	mark := map[string]any{"sha256": in.SHA256, "size_bytes": json.Number(strconv.FormatInt(in.Size, 10))}
	if in.SHA256 == "" || in.Size >= MaxSeen || data == nil || !utf8.Valid(data) {
		return map[string]any{reference: mark}, false
	}
	if text, err := json.Marshal(string(data)); !json.Valid(data) && err == nil {
		data = text
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if intents.Unambiguous(data) != nil || d.Decode(&value) != nil {
		return map[string]any{reference: mark}, false
	}
	return value, true
}

// Reads says whether the tree can read an input at a pointer of the arguments.
func (e *Engine) Reads(pointer string) bool {
	return e.reads.touches(inputPath(pointer))
}

// touches says whether a value at a path can be read.
func (r *ReadSet) touches(path []string) bool {
	return r.All || slices.ContainsFunc(r.Paths, func(p []string) bool { return overlap(p, path) })
}

// overlap says whether one of two paths leads to the other, or below it.
func overlap(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// decideGiven is Decide for the Input of an order, in which marks stand for what policies cannot
// see of its inputs.
func (e *Engine) decideGiven(ctx context.Context, order *intents.Envelope, f intents.Facts) (Result, error) {
	in, hidden := input(order, f)
	hidden = slices.DeleteFunc(hidden, func(u unseen) bool { return !e.reads.touches(u.path) })
	if len(hidden) == 0 {
		return e.Decide(ctx, in)
	}
	r, read, err := e.watched(ctx, in, hidden)
	switch {
	case err != nil:
		return r, err
	case slices.ContainsFunc(read, func(u unseen) bool { return u.lost }):
		return Result{}, ErrNotKept
	case len(read) > 0:
		return Result{Deny: []Rule{{ID: IDInput, Reason: "a policy reads the input, which comes by a reference and cannot be shown to it: it has " + strconv.Itoa(MaxSeen) + " bytes or more, is not there yet, or is neither JSON nor text", Hint: "send the input by value, or a smaller one"}}}, nil
	}
	return r, nil
}

// watched decides an input anew, and says which of the hidden values in it rules came to read.
func (e *Engine) watched(ctx context.Context, in map[string]any, hidden []unseen) (Result, []unseen, error) {
	if e.apart != nil {
		return e.apart.ask(e.data, e.store, in, hidden)
	}
	w := &watch{paths: hidden}
	r, _, err := e.evaluate(ctx, in, w)
	return r, w.read, err
}

// watch notes which of some paths an evaluation reads, as far as its expressions say: one
// that reads a member which is not a constant reads all beside it.
type watch struct {
	paths []unseen
	read  []unseen
}

// Enabled is of topdown.QueryTracer.
func (w *watch) Enabled() bool { return len(w.paths) > 0 }

// Config is of topdown.QueryTracer.
func (w *watch) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent looks at an expression that is about to be evaluated.
func (w *watch) TraceEvent(x topdown.Event) {
	expr, ok := x.Node.(*ast.Expr)
	if !ok || x.Op != topdown.EvalOp {
		return
	}
	reads := &ReadSet{}
	reads.walk(expr)
	w.paths = slices.DeleteFunc(w.paths, func(u unseen) bool {
		if !reads.touches(u.path) {
			return false
		}
		w.read = append(w.read, u)
		return true
	})
}
