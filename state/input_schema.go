package state

import (
	"encoding/json"
	"fmt"

	"aob.dev/writ/agentic/workflows"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// usableSchema refuses an approval whose input schema could not be checked with.
func usableSchema(a catalog.SkillApprove) error {
	const at = "/intent/args/input_schema"
	if len(a.InputSchema) > catalog.MaxInputSchema {
		return illegal(at, fmt.Sprintf("more than %d bytes: leave it out, the skill's server checks the input of each call", catalog.MaxInputSchema))
	}
	if _, err := schemas.Compile(a.InputSchema); a.InputSchema != nil && err != nil {
		return illegal(at, "is no JSON Schema: "+err.Error())
	}
	return nil
}

// misfit is the first node whose literal inputs break the schema with which its skill was
// approved, and how. A skill that is not approved, or without its schema, has nothing to break.
func (s *State) misfit(tenant string, nodes []workflows.Node) (i int, f *workflows.Fault) {
	if s.rules < intents.RulesWorkflows {
		return 0, nil
	}
	for i, n := range nodes {
		if n.Type != workflows.Function {
			continue
		}
		pin, ok, err := s.dir.SkillNamed(s.rules, tenant, n.Fn)
		if err != nil || !ok || pin.InputSchema == "" {
			continue
		}
		if faults := n.CheckInput(json.RawMessage(pin.InputSchema)); len(faults) > 0 {
			return i, &faults[0]
		}
	}
	return 0, nil
}

// misfits refuses graphs of which one has such a node.
func (s *State) misfits(tenant, pointer string, graphs ...*workflows.Graph) error {
	for _, g := range graphs {
		if i, f := s.misfit(tenant, g.Nodes); f != nil {
			return illegal(pointer, fmt.Sprintf("workflow %s: node %s, %s: %s", g.WorkflowID, g.Nodes[i].ID, f.Pointer, f.Reason))
		}
	}
	return nil
}
