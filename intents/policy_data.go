package intents

import "encoding/json"

// PolicyData is the directory as policies see it, at data.directory: the part that belongs to the tenant
// of the intent. It changes only by operators' intents. Do not modify what it contains.
type PolicyData struct {
	// Tenants contains the tenant's own data: data.directory.tenants[tenant][key].
	Tenants map[string]map[string]json.RawMessage `json:"tenants"`
	// Roles maps the tenant's roles to their capabilities: data.directory.roles[tenant][role].
	Roles map[string]map[string][]string `json:"roles"`
	// Pins contains the tenant's approved skills: data.directory.pins[tenant][skill].
	Pins map[string]map[string]SkillInput `json:"pins"`
	// Approvers are the people who may approve the tenant's held intents: users whose roles give
	// runs:approve.
	Approvers map[string][]string `json:"approvers"`
}
