package workflows_test

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/state/workflows"
)

// TestLiteralInputs: literals are checked against the skill's schema; template values, and all
// that could depend on them, are not.
func TestLiteralInputs(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"},"to":{"enum":["a","b"]},"list":{"type":"array","items":{"type":"integer"},"uniqueItems":true},
		"deep":{"type":"object","properties":{"k":{"type":"string","minLength":2}},"required":["k"],"additionalProperties":false}},
		"required":["n"],"additionalProperties":false%s}`
	plain := schema[:len(schema)-3] + "}"
	either := schema[:len(schema)-3] + `,"oneOf":[{"properties":{"to":{"const":"a"}},"required":["list"]},{"properties":{"to":{"const":"b"}},"required":["deep"]}]}`
	for _, x := range []struct{ schema, inputs, pointer, reason string }{
		{plain, `{"n":1,"to":"a","list":[1,2],"deep":{"k":"xy"}}`, "", ""},
		{plain, `{"n":"1"}`, "/inputs/n", "must be integer"},
		{plain, `{"to":"a"}`, "/inputs/n", "is required"},
		{plain, ``, "/inputs/n", "is required"},
		{plain, `{"n":1,"other":2}`, "/inputs/other", "unknown member"},
		{plain, `{"n":1,"to":"c"}`, "/inputs/to", `must be one of "a", "b"`},
		{plain, `{"n":"${inputs.n}","to":"${inputs.to}","list":"${inputs.list}","deep":"${inputs.deep}"}`, "", ""},
		{plain, `{"n":"${inputs.n}","other":"${inputs.n}"}`, "/inputs/other", "unknown member"},
		{plain, `{"n":"${inputs.n}","deep":{}}`, "/inputs/deep/k", "is required"},
		{plain, `{"n":"${inputs.n}","deep":{"k":"x"}}`, "/inputs/deep/k", "must have at least 2 characters"},
		{plain, `{"n":1,"list":["${inputs.n}","${inputs.n}"]}`, "", ""},
		{plain, `{"n":1,"list":["${inputs.n}","x"]}`, "/inputs/list/1", "must be integer"},
		{plain, `{"n":1,"deep":{"k":"$${"}}`, "", ""}, // a literal ${: two characters
		{either, `{"n":1,"to":"a"}`, "/inputs", "must have exactly one of the members list, deep"},
		{either, `{"n":1,"to":"${inputs.to}"}`, "", ""}, // which form applies is unknown
		{either, `{"n":true,"to":"${inputs.to}"}`, "/inputs/n", "must be integer"},
		{`{"properties":{"principal":{"type":"string","minLength":1}},"required":["principal"]}`, `{}`, "", ""}, // the executor fills it in
		{`{"type":"nothing"}`, `{}`, "", ""},                                                                    // unusable
	} {
		n := workflows.Node{ID: "a", Type: workflows.Function, Fn: "crm.put"}
		if x.inputs != "" {
			n.Inputs = json.RawMessage(x.inputs)
		}
		got := n.CheckInput(json.RawMessage(x.schema))
		switch {
		case x.pointer == "" && len(got) > 0:
			t.Errorf("%s: %v", x.inputs, got)
		case x.pointer != "" && (len(got) != 1 || got[0].Pointer != x.pointer || got[0].Reason != x.reason):
			t.Errorf("%s: %v, want %s %s", x.inputs, got, x.pointer, x.reason)
		}
	}
}
