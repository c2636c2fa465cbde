// Package policies decides intents with Rego. A policy can only narrow what the router's own
// checks allow.
//
// A tree of Rego modules ([Source]) is compiled once into an [Engine], which
// answers the query data.writ.authz.decision:
//
//	{"allow": true, "deny": [{"id", "reason", "hint"}], "hold": [{"id", "reason", "approvers"}], "obligations": [{"name", "value"}]}
//
// Deny takes precedence over hold, hold over allow, and what no rule allows is denied. Modules
// in packages data.writ.ext.<name> may add deny and hold, never allow. A policy sees the intent
// and the inputs of its decision as input ([Input]) and its tenant's directory as data.directory
// ([Data]); it has no network, no clock and no randomness, so a decision is a function of its
// record. An error, an undefined decision or one that takes longer than [Timeout] is a denial by
// "writ.engine".
//
// An engine never changes: a new tree is a new engine, other directory data another generation of
// it ([Engine.WithData]). [Live] holds the engine in force.
package policies

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Timeout bounds one evaluation. One that takes longer is tried once more, since a process that
// was suspended looks like a slow policy; then it is a denial. An evaluation takes milliseconds:
// a second is for a machine whose processors are busy, where 50 ms denied honest intents.
const Timeout = time.Second

// Query is the entry point of every tree.
const Query = "data.writ.authz.decision"

// extensions collects what extension packages add. It is queried here, and not by the tree's own
// rules, so that no replaced tree can omit them.
const extensions = "deny = {x | x := data.writ.ext[_].deny[_]}; hold = {x | x := data.writ.ext[_].hold[_]}"

// Engine is a compiled policy tree with one generation of directory data. It is
// immutable and safe for concurrent use.
type Engine struct {
	*tree
	store      storage.Store
	generation uint64 // its number, which begins the keys of what it remembers
}

// tree is the part of an engine that new data does not change.
type tree struct {
	*compiled
	revision int64 // 0: none
	timeout  time.Duration
	memo     *memo

	forgetful bool
}

// compiled is what a source alone determines. It never changes.
type compiled struct {
	source   Source
	digest   string
	compiler *ast.Compiler
	decision ast.Body
	extended ast.Body // nil without extension packages
	rules    map[string]RuleInfo
	reads    *ReadSet
	lookups  []lookup       // of reads
	static   map[string]any // data files
}

// last is what was compiled last. The node of many tenants, and one that starts and then checks
// its records, needs the same source again and again.
var last atomic.Pointer[compiled]

// New is NewTree of a source without revision.
func New(source Source) (*Engine, error) {
	return NewTree(Tree{Source: source})
}

// NewTree compiles a tree, initially without directory data. It refuses what `opa check
// --strict` refuses, built-ins that reach outside or depend on chance, and deny and hold rules
// without METADATA.
func NewTree(from Tree) (*Engine, error) {
	c := last.Load()
	if digest := from.Source.Digest(); c == nil || digest == "" || c.digest != digest {
		var err error
		if c, err = compileSource(from.Source.Deciding(), digest); err != nil {
			return nil, err
		}
		last.Store(c)
	}
	return (&Engine{tree: &tree{compiled: c, revision: from.Revision, timeout: Timeout, memo: newMemo()}}).WithData(Data{})
}

func compileSource(source Source, digest string) (*compiled, error) {
	c := &compiled{source: source, digest: digest}
	modules, err := parse(source)
	if err != nil {
		return nil, err
	}
	if c.rules, err = describe(modules); err != nil {
		return nil, err
	}
	if c.static, err = source.documents(); err != nil {
		return nil, err
	}
	if _, taken := c.static["directory"]; taken {
		return nil, errors.New("policies: data.directory is the router's; no data file may set it")
	}
	if c.compiler, err = compile(modules); err != nil {
		return nil, err
	}
	if c.decision, err = c.prepare("decision = " + Query); err != nil {
		return nil, err
	}
	if extends(modules) {
		if c.extended, err = c.prepare(extensions); err != nil {
			return nil, err
		}
	}
	if len(c.compiler.GetRulesExact(ast.MustParseRef(Query))) == 0 {
		return nil, fmt.Errorf("policies: the tree does not define %s", Query)
	}
	c.reads = readSet(c.compiler.Modules, c.decision, c.extended)
	c.lookups = lookups(c.reads.Paths)
	return c, nil
}

func (c *compiled) prepare(text string) (ast.Body, error) {
	body, err := ast.ParseBody(text)
	if err != nil {
		return nil, err
	}
	return c.compiler.QueryCompiler().Compile(body)
}

// WithData makes another generation: the same tree over the directory data of a tenant, none of whose
// decisions is remembered yet. Nothing is compiled again.
func (e *Engine) WithData(d Data) (*Engine, error) {
	doc, err := document(d)
	if err != nil {
		return nil, fmt.Errorf("policies: directory data: %w", err)
	}
	root := map[string]any{"directory": doc}
	for key, value := range e.static {
		root[key] = value
	}
	store := inmem.NewFromObjectWithOpts(root, inmem.OptReturnASTValuesOnRead(true))
	return &Engine{tree: e.tree, store: store, generation: e.memo.generations.Add(1)}, nil
}

// Forgetful is the same tree and data, evaluated for every intent: none of its generations
// remembers a decision.
func (e *Engine) Forgetful() *Engine {
	return e.but(func(t *tree) { t.forgetful = true })
}

// WithoutDeadline is the same tree and data with a minute for each evaluation: for tests, and
// for repeating decisions on a machine that may be busy.
func (e *Engine) WithoutDeadline() *Engine {
	return e.but(func(t *tree) { t.timeout = time.Minute })
}

func (e *Engine) but(change func(*tree)) *Engine {
	t := *e.tree
	t.memo = newMemo()
	change(&t)
	return &Engine{tree: &t, store: e.store, generation: t.memo.generations.Add(1)}
}

// Digest identifies the tree that decides (Source.Digest).
func (e *Engine) Digest() string { return e.digest }

// Revision of the tree, which only increases; 0 if it has none.
func (e *Engine) Revision() int64 { return e.revision }

// Source is the tree that decides. Do not modify.
func (e *Engine) Source() Source { return e.source }

// ReadSet is the part of the input that the tree can read. Do not modify.
func (e *Engine) ReadSet() *ReadSet { return e.reads }

// MemoStats counts the decisions of all generations of the tree that were remembered, and those that
// had to be evaluated although they could have been remembered.
func (e *Engine) MemoStats() (hits, misses int64) { return e.memo.hits.Load(), e.memo.misses.Load() }

// Decide evaluates an input as Input makes it. The result is shared: do not modify it. The error
// is only that of the caller's context: every failure of the policy is a denial.
func (e *Engine) Decide(ctx context.Context, input map[string]any) (Result, error) {
	at := func(l *lookup) (any, bool) { return below(input, l.path) }
	return e.remembered(ctx, at, func() (ast.Value, error) { return ast.InterfaceToValue(input) })
}

// decide is Decide for the Input of an intent, of which only what the policy can read is made.
func (e *Engine) decide(ctx context.Context, s *subject) (Result, error) {
	at := func(l *lookup) (any, bool) { return l.value(s) }
	return e.remembered(ctx, at, func() (ast.Value, error) {
		if e.reads.All {
			return ast.InterfaceToValue(s.document())
		}
		part, err := s.read(e.lookups, 0)
		if part == nil || err != nil {
			return ast.NewObject(), err
		}
		return part.Value, nil
	})
}

// remembered returns the decision about the values that the policy can read, or makes it.
func (e *Engine) remembered(ctx context.Context, at func(*lookup) (any, bool), input func() (ast.Value, error)) (Result, error) {
	if e.reads.All || e.forgetful {
		r, _, err := e.evaluate(ctx, input, nil)
		return r, err
	}
	buf := keys.Get().(*[]byte) //nolint:forcetypeassert // nothing else is put there
	defer keys.Put(buf)
	key, ok := memoKey(binary.AppendUvarint((*buf)[:0], e.generation), e.lookups, at)
	if !ok {
		r, _, err := e.evaluate(ctx, input, nil)
		return r, err
	}
	*buf = key
	if r, ok := e.memo.get(key); ok {
		return r, nil
	}
	r, sound, err := e.evaluate(ctx, input, nil)
	if err == nil && sound {
		e.memo.put(key, r)
	}
	return r, err
}

// Evaluate returns what Decide returns, always by a fresh evaluation.
func (e *Engine) Evaluate(ctx context.Context, input map[string]any) (Result, error) {
	r, _, err := e.evaluate(ctx, func() (ast.Value, error) { return ast.InterfaceToValue(input) }, nil)
	return r, err
}

// evaluate queries OPA. tracer may be nil. sound reports that the policy itself answered: only
// then may the result be remembered.
func (e *Engine) evaluate(ctx context.Context, input func() (ast.Value, error), tracer topdown.QueryTracer) (r Result, sound bool, err error) {
	value, err := input()
	if err == nil {
		r, err = e.ask(ctx, value, tracer)
	}
	if topdown.IsCancel(err) && ctx.Err() == nil {
		r, err = e.ask(ctx, value, tracer)
	}
	switch {
	case err == nil:
		return r, true, nil
	case ctx.Err() != nil:
		return Result{}, false, fmt.Errorf("policies: %w", context.Cause(ctx))
	case topdown.IsCancel(err):
		return broken("the policy took too long"), false, nil
	default:
		return broken("the policy did not answer"), false, nil
	}
}

// fixed stands for the clock, which no policy can read.
var fixed = time.Unix(0, 0)

// ask evaluates once, within the timeout. tracer may be nil.
func (e *Engine) ask(ctx context.Context, input ast.Value, tracer topdown.QueryTracer) (Result, error) {
	run, end, err := e.begin(ctx, input, tracer)
	if err != nil {
		return Result{}, err
	}
	defer end()
	return e.answer(run)
}

// begin prepares the evaluation of bodies, all within one timeout, until end.
func (e *Engine) begin(ctx context.Context, input ast.Value, tracer topdown.QueryTracer) (run func(ast.Body) (topdown.QueryResultSet, error), end func(), err error) {
	txn, err := e.store.NewTransaction(ctx)
	if err != nil {
		return nil, nil, err
	}
	cancel := topdown.NewCancel()
	watchdog := time.AfterFunc(e.timeout, cancel.Cancel)
	forget := context.AfterFunc(ctx, cancel.Cancel)
	run = func(body ast.Body) (topdown.QueryResultSet, error) {
		q := topdown.NewQuery(body).
			WithCompiler(e.compiler).WithStore(e.store).WithTransaction(txn).
			WithInput(ast.NewTerm(input)).WithCancel(cancel).WithMetrics(metrics.NoOp()).
			WithStrictBuiltinErrors(true).WithTime(fixed)
		if tracer != nil {
			_, watches := tracer.(*watch) // it must see the rules that an index leaves out
			q = q.WithQueryTracer(tracer).WithIndexing(!watches)
		}
		return q.Run(ctx)
	}
	return run, func() {
		watchdog.Stop()
		forget()
		e.store.Abort(ctx, txn)
	}, nil
}

func (e *Engine) answer(run func(ast.Body) (topdown.QueryResultSet, error)) (Result, error) {
	rows, err := run(e.decision)
	if err != nil {
		return Result{}, err
	}
	if len(rows) != 1 {
		return Result{}, errors.New("undefined")
	}
	r, err := decodeDecision(rows[0]["decision"])
	if err != nil {
		return Result{}, err
	}
	if e.extended != nil {
		rows, err := run(e.extended)
		if err != nil {
			return Result{}, err
		}
		if len(rows) != 1 {
			return Result{}, errors.New("undefined extensions")
		}
		if r, err = r.tighten(rows[0]["deny"], rows[0]["hold"]); err != nil {
			return Result{}, err
		}
	}
	return r.resolve(e.rules)
}

// extends reports whether any module belongs to an extension package.
func extends(modules map[string]*ast.Module) bool {
	for _, m := range modules {
		if strings.HasPrefix(m.Package.Path.String(), "data.writ.ext.") {
			return true
		}
	}
	return false
}
