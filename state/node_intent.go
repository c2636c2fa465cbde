package state

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// CheckNodeIntent requires that the task of a node signs exactly the node's intent: of its type,
// with the arguments that the graph determines.
func (v *View) CheckNodeIntent(t Task, typ string, args json.RawMessage) error {
	if t.Node == "" || typ == TypeStepFinish {
		return nil
	}
	want, ok, err := v.NodeIntent(t)
	switch {
	case err != nil: // its step was accepted
		return intents.Refuse(intents.TaskScope, "/intent/args", "the arguments of the node cannot be computed: "+err.Error())
	case !ok:
		return nil
	case want.Type != typ:
		return intents.Refuse(intents.TaskScope, "/intent/type", "the node "+t.Node+" is a "+want.Type)
	}
	have, err := intents.Canonical(args)
	if err != nil || bytes.Equal(have, want.Args) {
		return err
	}
	return intents.Refuse(intents.TaskScope, "/intent/args"+difference(want.Args, have), "the arguments are not those that the graph gives the node "+t.Node)
}

// FirstDifference is the pointer of the first place where two JSON texts differ.
func FirstDifference(a, b json.RawMessage) (pointer string, differ bool) {
	x, err1 := intents.Canonical(a)
	y, err2 := intents.Canonical(b)
	if err1 != nil || err2 != nil {
		return "", true
	}
	return difference(x, y), !bytes.Equal(x, y)
}

// difference is the pointer of the first place where two JSON texts differ.
func difference(a, b json.RawMessage) string {
	x, _ := schemas.Decode(a) // canonical JSON
	y, _ := schemas.Decode(b)
	return differs(x, y)
}

func differs(a, b any) string {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return ""
		}
		names := slices.Concat(slices.Collect(maps.Keys(x)), slices.Collect(maps.Keys(y)))
		slices.Sort(names)
		for _, name := range names {
			v, inX := x[name]
			w, inY := y[name]
			if inX != inY || !reflect.DeepEqual(v, w) {
				return "/" + schemas.Escape(name) + differs(v, w)
			}
		}
	case []any:
		y, ok := b.([]any)
		if !ok {
			return ""
		}
		for i := range max(len(x), len(y)) {
			if i >= len(x) || i >= len(y) {
				return "/" + strconv.Itoa(i)
			}
			if !reflect.DeepEqual(x[i], y[i]) {
				return "/" + strconv.Itoa(i) + differs(x[i], y[i])
			}
		}
	}
	return ""
}
