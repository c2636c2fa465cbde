package workflows

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"aob.dev/writ/schemas"
)

// byID maps types of nodes to types of their intents; an agent has none.
var byID = map[string]string{Function: "skill.call", Python: "exec_python", Approval: "approval.ask"}

// maxScriptSec is the time limit of a script in exec_python.
const maxScriptSec = 30

// Intent is the single intent of a node, with canonical arguments. For an agent the type is
// empty, and the arguments are the agent's input. The error is a *Fault whose pointer leads into
// the node.
func (g *Graph) Intent(node string, v Values) (typ string, args json.RawMessage, err error) {
	n := g.Node(node)
	if n == nil {
		return "", nil, &Fault{Pointer: "/id", Reason: "the graph has no node " + node}
	}
	typ, args, fault := g.intent(*n, read(v))
	if fault != nil {
		return "", nil, fault
	}
	return typ, args, nil
}

func (g *Graph) intent(n Node, r *reading) (string, json.RawMessage, *Fault) {
	args, fault := n.args(func(v any, pointer string) (any, *Fault) { return expand(v, pointer, r) })
	if fault != nil {
		return "", nil, fault
	}
	text, err := canonical(args)
	if err != nil {
		return "", nil, &Fault{Pointer: "/inputs", Reason: err.Error()}
	}
	return byID[n.Type], text, nil
}

// args of the node's intent; fill replaces inputs and from.
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

// expand replaces templates with values.
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

// templates returns the value with each of its texts replaced.
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
			if out[name], fault = templates(v[name], pointer+"/"+schemas.Escape(name), replace); fault != nil {
				return nil, fault
			}
		}
		return out, nil
	}
	return v, nil
}
