package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"aob.dev/writ/intents"
)

// Event is a decision as OPA's decision logs write it.
type Event struct {
	Labels     map[string]string      `json:"labels"`
	DecisionID string                 `json:"decision_id"` // the intent_id
	TraceID    string                 `json:"trace_id,omitempty"`
	Bundles    map[string]EventBundle `json:"bundles"`
	Path       string                 `json:"path"`
	Input      any                    `json:"input,omitempty"`
	Result     any                    `json:"result,omitempty"`
	Erased     []string               `json:"erased,omitempty"`
	Masked     []string               `json:"masked,omitempty"`
	Timestamp  string                 `json:"timestamp"`
	Metrics    map[string]int64       `json:"metrics"`
}

// EventBundle names the tree that decided.
type EventBundle struct {
	Revision string `json:"revision"` // its number, or without one its digest
}

// DecisionLog writes one event a line, in the order of the decisions, before the
// caller has them. Safe for concurrent use. An event that cannot be masked is written
// without input and result; one that cannot be written is left out: a decision rests
// on its record in the journal, not on this log.
type DecisionLog struct {
	labels map[string]string

	mu sync.Mutex // guards w
	w  io.Writer
}

// NewDecisionLog writes to w.
func NewDecisionLog(w io.Writer, labels map[string]string) *DecisionLog {
	return &DecisionLog{labels: labels, w: w}
}

// write logs one decision of an engine.
func (l *DecisionLog) write(ctx context.Context, e *Engine, order *intents.Envelope, f intents.Facts, r Result, took time.Duration) {
	revision := e.digest
	if e.revision > 0 {
		revision = strconv.FormatInt(e.revision, 10)
	}
	result, _ := plainJSON(r) // plain data
	x := Event{
		Labels: l.labels, DecisionID: order.ID(), TraceID: order.TraceID(), Bundles: map[string]EventBundle{"writ": {revision}},
		Path: "writ/authz/decision", Input: Input(order, f), Result: result, Timestamp: f.Now,
		Metrics: map[string]int64{"timer_server_handler_ns": took.Nanoseconds()},
	}
	if err := e.mask(ctx, &x); err != nil {
		x.Input, x.Result = nil, nil
		x.Erased = append(x.Erased, "/input", "/result")
	}
	line, err := json.Marshal(x)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.w.Write(append(line, '\n'))
}

// mask applies the masks that the tree defines for this event. It masks a copy of the
// input: the original shares the arguments with the order.
func (e *Engine) mask(ctx context.Context, x *Event) error {
	if e.masks == nil {
		return nil
	}
	event, err := plainJSON(x)
	if err != nil {
		return err
	}
	value, err := ast.InterfaceToValue(event)
	if err != nil {
		return err
	}
	rows, err := e.query(ctx, e.masks, value)
	if err != nil || len(rows) == 0 {
		return err // undefined masks nothing, as in OPA
	}
	rules, err := decodeMasks(rows[0]["mask"])
	if err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	if len(rules) > 0 {
		if x.Input, err = plainJSON(x.Input); err != nil {
			return err
		}
	}
	for _, r := range rules {
		if err := r.apply(x); err != nil {
			return err
		}
	}
	return nil
}
