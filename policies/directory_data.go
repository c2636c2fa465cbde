package policies

import (
	"encoding/json"

	"aob.dev/writ/intents"
)

// Data is the directory as policies see it, at data.directory. It changes only by operators'
// intents; every change makes a new generation of the engine (Engine.WithData), so a remembered
// decision never outlives the data it read.
type Data struct {
	// Tenants contains each tenant's own data: data.directory.tenants[tenant][key].
	Tenants map[string]map[string]json.RawMessage `json:"tenants"`
	// Roles maps each tenant's roles to their capabilities: data.directory.roles[tenant][role].
	Roles map[string]map[string][]string `json:"roles"`
	// Pins contains each tenant's approved skills: data.directory.pins[tenant][skill].
	Pins map[string]map[string]intents.SkillInput `json:"pins"`
	// Approvers are the people who may approve a tenant's held intents: users whose roles give
	// runs:approve.
	Approvers map[string][]string `json:"approvers"`
}

// document is the data as JSON values, with every member present.
func (d Data) document() (map[string]any, error) {
	value, err := plainJSON(d)
	doc, _ := value.(map[string]any)
	for key, value := range doc {
		if value == nil {
			doc[key] = map[string]any{}
		}
	}
	return doc, err
}
