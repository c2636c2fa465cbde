package workflows

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"aob.dev/writ/agentic/document"
)

// types of the orders that nodes are; an agent has none.
var orders = map[string]string{Function: "skill.call", Python: "exec_python", Approval: "approval.ask"}

// maxScriptSec is how long exec_python lets a script run.
const maxScriptSec = 30

// Order is the one order of a node, with canonical arguments. Of an agent the type is empty,
// and the arguments are what the agent is given. The error is a *Fault whose pointer leads
// into the node.
func (g *Graph) Order(node string, v Values) (typ string, args json.RawMessage, err error) {
	n := g.Node(node)
	if n == nil {
		return "", nil, &Fault{Pointer: "/id", Reason: "the graph has no node " + node}
	}
	typ, args, fault := g.order(*n, read(v))
	if fault != nil {
		return "", nil, fault
	}
	return typ, args, nil
}

func (g *Graph) order(n Node, r *reading) (string, json.RawMessage, *Fault) {
	args, fault := n.args(func(v any, pointer string) (any, *Fault) { return expand(v, pointer, r) })
	if fault != nil {
		return "", nil, fault
	}
	text, err := canonical(args)
	if err != nil {
		return "", nil, &Fault{Pointer: "/inputs", Reason: err.Error()}
	}
	return orders[n.Type], text, nil
}

// args of the node's order; fill gives what stands for inputs and from.
func (n Node) args(fill func(v any, pointer string) (any, *Fault)) (any, *Fault) {
	var inputs, from any
	var fault *Fault
	if n.Inputs != nil {
		if inputs, fault = fill(decode(n.Inputs), "/inputs"); fault != nil {
			return nil, fault
		}
	}
	if n.From != nil {
		if from, fault = fill(decode(n.From), "/from"); fault != nil {
			return nil, fault
		}
	}
	args := map[string]any{}
	switch n.Type {
	case Function:
		args["skill"] = n.Fn
	case Python:
		args["script"] = n.Fn
		if n.TimeoutSec > 0 {
			args["timeout_sec"] = min(n.TimeoutSec, maxScriptSec)
		}
	default:
		if inputs == nil {
			inputs = map[string]any{}
		}
		return inputs, nil
	}
	if inputs != nil {
		args["input"] = inputs
	}
	switch from.(type) {
	case nil:
	case string:
		args["from"] = from
	default:
		args["inputs"] = from
	}
	return args, nil
}

// expand puts values in the place of templates.
func expand(v any, pointer string, r *reading) (any, *Fault) {
	return templates(v, pointer, func(s, pointer string) (any, *Fault) {
		list, wrong := parts(s)
		if wrong != "" {
			return nil, &Fault{Pointer: pointer, Reason: wrong}
		}
		var b strings.Builder
		for _, p := range list {
			if p.path == nil {
				b.WriteString(p.text)
				continue
			}
			value, ok := r.at(*p.path)
			switch text, isText := value.(string); {
			case !ok:
				return nil, &Fault{Pointer: pointer, Reason: p.path.pointer() + " is not there, or is hidden"}
			case len(list) == 1:
				return value, nil
			case isText:
				b.WriteString(text)
			default:
				text, err := canonical(value)
				if err != nil {
					return nil, &Fault{Pointer: pointer, Reason: err.Error()}
				}
				b.Write(text)
			}
		}
		return b.String(), nil
	})
}

// templates gives the value with each of its texts replaced.
func templates(v any, pointer string, replace func(s, pointer string) (any, *Fault)) (any, *Fault) {
	var fault *Fault
	switch v := v.(type) {
	case string:
		return replace(v, pointer)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			if out[i], fault = templates(x, pointer+"/"+strconv.Itoa(i), replace); fault != nil {
				return nil, fault
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if out[name], fault = templates(v[name], pointer+"/"+document.Token(name), replace); fault != nil {
				return nil, fault
			}
		}
		return out, nil
	}
	return v, nil
}
