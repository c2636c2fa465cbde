package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"aob.dev/writ/intents"
)

// Table is a decision table: who may do what, as data. Every principal is combined with every
// intent; a pair that is not listed must be denied.
//
//	data: {tenants: {acme: {skills_allow: [outlet_list]}}}   # directory data
//	base: {now: …, constraints: {…}, …}                      # members of every input
//	principals:
//	  task: {actor: {user_id: ana, tenant: acme}, signer: {kid: k, role: task}}
//	intents:
//	  call: {intent: {type: skill.call, args: {skill: outlet_list}}}
//	expect:
//	  task:
//	    call: allow            # or {deny: [ids]}, or {hold: [ids], approvers: [names]}
//
// An input is base, the principal and the intent, merged member by member; null removes a
// member.
type Table struct {
	Title      string                           `yaml:"title"`
	Data       map[string]any                   `yaml:"data"`
	Base       map[string]any                   `yaml:"base"`
	Principals map[string]map[string]any        `yaml:"principals"`
	Intents    map[string]map[string]any        `yaml:"intents"`
	Expect     map[string]map[string]Expectancy `yaml:"expect"`
}

// Expectancy is one listed cell of a table.
type Expectancy struct {
	Verdict   intents.Verdict
	IDs       []string // deny, hold: exactly these rules, sorted
	Approvers []string // hold; nil: not checked
}

// UnmarshalYAML reads "allow", {deny: [ids]} or {hold: [ids], approvers: [names]}.
func (x *Expectancy) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Value == "allow" {
		*x = Expectancy{Verdict: intents.Allow}
		return nil
	}
	var cell map[string][]string
	if err := n.Decode(&cell); err != nil {
		return fmt.Errorf("line %d: want allow, {deny: [ids]} or {hold: [ids], approvers: [names]}", n.Line)
	}
	deny, denies := cell["deny"]
	hold, holds := cell["hold"]
	approvers, names := cell["approvers"]
	switch {
	case denies && len(deny) > 0 && len(cell) == 1:
		*x = Expectancy{Verdict: intents.Deny, IDs: deny}
	case holds && len(hold) > 0 && (len(cell) == 1 || names && len(cell) == 2):
		*x = Expectancy{Verdict: intents.Hold, IDs: hold, Approvers: approvers}
	default:
		return fmt.Errorf("line %d: want allow, {deny: [ids]} or {hold: [ids], approvers: [names]}", n.Line)
	}
	slices.Sort(x.IDs)
	return nil
}

// ParseTable reads a table. Unknown members, cells for principals or intents that the table does
// not have, and a table without cells are errors.
func ParseTable(r io.Reader) (*Table, error) {
	var t Table
	d := yaml.NewDecoder(r)
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("decision table: %w", err)
	}
	if len(t.Principals) == 0 || len(t.Intents) == 0 {
		return nil, errors.New("decision table: no principals or no intents")
	}
	for who, cells := range t.Expect {
		if _, ok := t.Principals[who]; !ok {
			return nil, fmt.Errorf("decision table: no principal %q", who)
		}
		for what := range cells {
			if _, ok := t.Intents[what]; !ok {
				return nil, fmt.Errorf("decision table: no intent %q", what)
			}
		}
	}
	return &t, nil
}

// Cell is a pair of a table with its decision.
type Cell struct {
	Principal string
	Intent    string
	Input     map[string]any
	Result    Result
	Wrong     string // why the decision is not the expected one; empty: it is as expected
}

// run decides every pair under the tree of e and the table's own data, of which each sees its tenant's.
func (t *Table) run(ctx context.Context, e *Engine) ([]Cell, error) {
	var data Data
	err := decodeStrict(t.Data, &data)
	if err != nil {
		return nil, fmt.Errorf("decision table: data: %w", err)
	}
	of := map[string]*Engine{} // by tenant
	var cells []Cell
	for _, who := range slices.Sorted(maps.Keys(t.Principals)) {
		for _, what := range slices.Sorted(maps.Keys(t.Intents)) {
			plain, err := plainJSON(merge(merge(t.Base, t.Principals[who]), t.Intents[what])) // plain JSON instead of YAML's values
			if err != nil {
				return nil, fmt.Errorf("decision table: %s, %s: %w", who, what, err)
			}
			in, _ := plain.(map[string]any)
			tenant, _ := below(in, []string{"actor", "tenant"})
			name, _ := tenant.(string)
			if of[name] == nil {
				if of[name], err = e.WithData(ofTenant(data, name)); err != nil {
					return nil, err
				}
			}
			r, err := of[name].Evaluate(ctx, in)
			if err != nil {
				return nil, err
			}
			if r, err = approved(r, in); err != nil {
				return nil, fmt.Errorf("decision table: %s, %s: %w", who, what, err)
			}
			want, listed := t.Expect[who][what]
			cells = append(cells, Cell{who, what, in, r, want.judge(r, listed)})
		}
	}
	return cells, nil
}

// approved is the result after the approvals of an input, which Judge counts for an intent.
func approved(r Result, input map[string]any) (Result, error) {
	var in struct {
		Actor struct {
			UserID string `json:"user_id"`
		} `json:"actor"`
		Approvals []intents.Approval `json:"approvals"`
	}
	raw, err := json.Marshal(input)
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil || len(r.Hold) == 0 {
		return r, err
	}
	asked := intents.Requesters{People: []intents.Approver{{User: in.Actor.UserID}}}
	return r.withoutUser(in.Actor.UserID).WithApprovals(in.Approvals, asked), nil
}

func (x Expectancy) judge(r Result, listed bool) string {
	got := fmt.Sprintf("%s [%s]", r.Verdict(), strings.Join(r.PolicyIDs(), " "))
	switch {
	case !listed && r.Verdict() != intents.Deny:
		return got + ", but is not listed, so it must be denied"
	case !listed:
		return ""
	case r.Verdict() != x.Verdict || !slices.Equal(r.PolicyIDs(), x.IDs):
		return fmt.Sprintf("%s, want %s [%s]", got, x.Verdict, strings.Join(x.IDs, " "))
	case x.Approvers != nil && !slices.Equal(r.Approvers(), x.Approvers):
		return fmt.Sprintf("approvers %v, want %v", r.Approvers(), x.Approvers)
	}
	return ""
}

// merge lays b over a; objects are merged, null removes a member.
func merge(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range b {
		inner, isObject := v.(map[string]any)
		outer, wasObject := out[k].(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isObject && wasObject:
			out[k] = merge(outer, inner)
		default:
			out[k] = v
		}
	}
	return out
}
