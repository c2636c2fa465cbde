package policies

import "aob.dev/writ/intents"

// Data is the directory as the decisions of one tenant see it. Every change makes a new generation of
// the engine (Engine.WithData), so a remembered decision never outlives the data it read.
type Data = intents.PolicyData

// ofTenant is the part of some data that belongs to a tenant.
func ofTenant(d Data, tenant string) Data {
	return Data{
		Tenants: only(d.Tenants, tenant), Roles: only(d.Roles, tenant), Pins: only(d.Pins, tenant), Approvers: only(d.Approvers, tenant),
	}
}

func only[V any](all map[string]V, key string) map[string]V {
	v, there := all[key]
	if !there {
		return nil
	}
	return map[string]V{key: v}
}

// document is the data as JSON values, with every member present.
func document(d Data) (map[string]any, error) {
	value, err := plainJSON(d)
	doc, _ := value.(map[string]any)
	for key, value := range doc {
		if value == nil {
			doc[key] = map[string]any{}
		}
	}
	return doc, err
}
