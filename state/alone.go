package state

import (
	"encoding/json"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// DataAlone names the person who is alone with a new writ that only their machine reaches. Holds of
// the shipped rules then wait for that person in place of four eyes: see intents.HoldRule.InPerson.
// Only a genesis puts it. An operator takes it away, or the first second person who may approve.
const DataAlone = "alone"

// Alone is tenant data that says which user is alone. The genesis also gives that user the roles.
func Alone(tenant, user string) GenesisData {
	value, _ := json.Marshal(user) // a string always is
	return GenesisData{Tenant: tenant, Data: catalog.Data{Key: DataAlone, Value: value}}
}

// RolesAlone are the roles of a user who is alone.
var RolesAlone = []string{"user", "auditor", RoleApprover}

// alone returns the user who is alone; empty if there is none.
func (t *tenant) alone() (user string) {
	_ = json.Unmarshal(t.Data[DataAlone], &user) // a genesis has put a string, an operator null
	return user
}

// Alone returns the user who is alone in a tenant; empty if there is none.
func (d *Directory) Alone(tenant string) string {
	if t := d.tenants[tenant]; t != nil {
		return t.alone()
	}
	return ""
}

// endAlone ends it once another user may approve, be it by an API key alone.
func (t *tenant) endAlone() {
	one, may := t.alone(), t.approvers()
	for _, k := range t.Keys {
		if _, row := t.Users[k.UserID]; !row && Covers(t.capabilities(k.MaxRoles), CapabilityApprove) {
			may = append(may, k.UserID)
		}
	}
	if one != "" && slices.ContainsFunc(may, func(user string) bool { return user != one }) {
		delete(t.Data, DataAlone)
	}
}

// legalInPerson refuses a key for one person that others would use, too.
func legalInPerson(k catalog.APIKey) error {
	if k.InPerson && (k.MayAssertUser || k.FrontEnd) {
		return intents.Refuse(intents.MalformedArgs, "/intent/args/api_key/in_person", "a key for one person in the console and terminals asserts nobody, and is of no chat program")
	}
	return nil
}
