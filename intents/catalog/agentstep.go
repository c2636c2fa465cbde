package catalog

import "encoding/json"

// AlsoNeeds are the capabilities that an intent needs beside that of its row: for a plan
// those to run the agents of its steps.
func AlsoNeeds(typ string, args json.RawMessage) []string {
	var a Plan
	if typ != "plan" || json.Unmarshal(args, &a) != nil {
		return nil
	}
	var out []string
	for _, s := range a.Steps {
		if s.Agent != "" {
			out = append(out, RunAgent+":"+s.Agent)
		}
	}
	return out
}
