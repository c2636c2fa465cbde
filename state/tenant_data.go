package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// Directory data with a mistake fails open: a bound that is no number bounds nothing, a misspelt
// role grants nothing. So each admin.put is checked against the schema of tenant data, the
// catalog's capabilities, the tenant's roles and its users. Rows recorded earlier are not
// refused; Misput lists them.

// RoleApprover is a role that every tenant begins with.
const RoleApprover = "approver"

// mistake is a member of a row that cannot be what the operator intended.
type mistake struct{ pointer, reason, hint string } // pointer below /intent/args

// legalRow refuses a row with a mistake.
func (s *State) legalRow(a catalog.AdminPut, t *tenant, types *catalog.Catalog) error {
	found := mistakes(a, t, types)
	if len(found) == 0 {
		return nil
	}
	x := intents.Refuse(intents.MalformedArgs, "/intent/args"+found[0].pointer, found[0].reason)
	x.Hint = found[0].hint
	return x
}

func mistakes(a catalog.AdminPut, t *tenant, types *catalog.Catalog) []mistake {
	switch {
	case a.APIKey != nil && !a.APIKey.Revoked:
		return append(t.unknownRoles("/api_key/max_roles", a.APIKey.MaxRoles), t.misnamed(*a.APIKey)...)
	case a.User != nil && !a.User.Disabled:
		return t.unknownRoles("/user/roles", a.User.Roles)
	case a.Role != nil:
		return unknownCapabilities(a.Role.Capabilities, types)
	case a.Data != nil:
		return t.misput(*a.Data, types)
	}
	return nil
}

func (t *tenant) unknownRoles(at string, roles []string) (out []mistake) {
	for i, role := range roles {
		if _, ok := t.Roles[role]; !ok {
			out = append(out, mistake{
				fmt.Sprintf("%s/%d", at, i), catalog.Like("the tenant has no such role", role, slices.Collect(maps.Keys(t.Roles))),
				"see writ tenant role list; writ tenant role put makes one",
			})
		}
	}
	return out
}

func unknownCapabilities(capabilities []string, types *catalog.Catalog) (out []mistake) {
	for i, c := range capabilities {
		if reason := types.MisspeltCapability(c); reason != "" {
			out = append(out, mistake{fmt.Sprintf("/role/capabilities/%d", i), reason, "see the capabilities of docs/catalog.md"})
		}
	}
	return out
}

// misput judges data by the schema of its key. null deletes the data.
func (t *tenant) misput(data catalog.Data, types *catalog.Catalog) (out []mistake) {
	if _, there := t.Data[data.Key]; there && null(data.Value) {
		return nil
	}
	schema, err := schemas.Lookup(schemas.Base + "tenant_data.json")
	if err != nil {
		return []mistake{{"/data", "cannot be judged", ""}}
	}
	var value any // null needs no check
	if len(data.Value) > 0 {
		if value, err = schemas.Decode(data.Value); err != nil {
			return []mistake{{"/data/value", "is not JSON", ""}}
		}
	}
	const hint = "see docs/policies.md for the keys of tenant data; those of your own policies begin with x."
	for _, v := range schema.Validate(map[string]any{data.Key: value}) {
		_, below, nested := strings.Cut(v.Pointer[1:], "/")
		unknown := v.Reason == schemas.UnknownMember
		at, reason := "/data/value", v.Reason
		switch {
		case nested:
			at += "/" + below
		case unknown:
			at, reason = "/data/key", "unknown key of tenant data"
		}
		if unknown {
			end := strings.LastIndexByte(v.Pointer, '/')
			reason = catalog.Like(reason, v.Pointer[end+1:], schema.Part(v.Pointer[:end]).Members())
		}
		out = append(out, mistake{at, reason, hint})
	}
	if len(out) > 0 {
		return out
	}
	switch data.Key {
	case "ttl_max", "max_bytes", "redact":
		return unknownTypes(data.Value, types)
	case "approval":
		return t.unapprovable(data.Value)
	}
	return nil
}

func null(raw json.RawMessage) bool { return bytes.Equal(bytes.TrimSpace(raw), []byte("null")) }

// unknownTypes lists members named after no type of the catalog; a vendor's type may come later.
func unknownTypes(bounds json.RawMessage, known *catalog.Catalog) (out []mistake) {
	var byType map[string]json.RawMessage
	if err := json.Unmarshal(bounds, &byType); err != nil {
		return []mistake{{"/data/value", "cannot be read", ""}}
	}
	var types []string
	for _, r := range known.Rows() {
		types = append(types, r.Type)
	}
	for _, typ := range slices.Sorted(maps.Keys(byType)) {
		if typ != "*" && !strings.HasPrefix(typ, "x.") && !slices.Contains(types, typ) {
			out = append(out, mistake{"/data/value/" + schemas.Escape(typ), catalog.Like("no intent has this type", typ, types), "see docs/catalog.md; * is for all types"})
		}
	}
	return out
}

// tooFew reports whether the tenant requires more approvals than it has people to give them.
func (t *tenant) tooFew(approval json.RawMessage) (bool, error) {
	var a struct {
		Once    bool     `json:"once"`
		Tainted bool     `json:"tainted"`
		Skills  []string `json:"skills"`
		Count   int      `json:"count"`
	}
	if err := json.Unmarshal(approval, &a); err != nil {
		return false, err
	}
	return (a.Once || a.Tainted || len(a.Skills) > 0) && len(t.approvers()) < max(a.Count, 1), nil
}

func (t *tenant) unapprovable(approval json.RawMessage) []mistake {
	few, err := t.tooFew(approval)
	if err != nil {
		return []mistake{{"/data/value", "cannot be read", ""}}
	}
	if !few {
		return nil
	}
	return []mistake{{
		"/data/value", "nobody could meet it: the tenant has too few people who may approve",
		"first writ user put NAME --role approver for each of them",
	}}
}

// approvers of a tenant: users who are not disabled, and whose roles let them approve.
func (t *tenant) approvers() (out []string) {
	for _, u := range t.Users {
		if u.Disabled {
			continue
		}
		if Covers(t.capabilities(u.Roles), CapabilityApprove) {
			out = append(out, u.UserID)
		}
	}
	return out
}

// Misput is a recorded row that would be refused today: it may not be what the operator
// intended, and a limit that it should set may not be in force.
type Misput struct {
	Tenant  string
	Row     string // such as "data approval"
	Pointer string // into the arguments of its admin.put
	Reason  string
	Do      string // the command that corrects it
	// Denies: intents under the row are denied until it is corrected.
	Denies bool
}

// Misput lists them, sorted, as a router with these types would judge them now.
func (s *State) Misput(types *catalog.Catalog) (out []Misput) {
	dir := s.Directory()
	for _, id := range slices.Sorted(maps.Keys(dir.tenants)) {
		t := dir.tenants[id]
		rows, _ := s.Rows(id)
		judge := func(row, do string, a catalog.AdminPut) {
			for _, m := range mistakes(a, t, types) {
				out = append(out, Misput{Tenant: id, Row: row, Pointer: m.pointer, Reason: m.reason, Do: "writ " + do + " --tenant " + id})
			}
		}
		for _, r := range rows.Roles {
			judge("role "+r.Role, "tenant role put "+r.Role+" --capability AREA:VERB", catalog.AdminPut{Role: &r})
		}
		for _, u := range rows.Users {
			judge("user "+u.UserID, "user put "+u.UserID+" --role ROLE", catalog.AdminPut{User: &u})
		}
		for _, k := range rows.APIKeys {
			judge("apikey "+k.ID, "apikey revoke "+k.ID, catalog.AdminPut{APIKey: &k})
		}
		for _, key := range slices.Sorted(maps.Keys(rows.Data)) {
			if key == catalog.KeyStop {
				continue
			}
			if few, err := t.tooFew(rows.Data[key]); key == "approval" && few && err == nil {
				out = append(out, Misput{
					Tenant: id, Row: "data approval", Pointer: "/data/value", Denies: true,
					Reason: "intents that must wait for people are denied, since too few people may approve them",
					Do:     "writ user put NAME --role approver --tenant " + id,
				})
				continue
			}
			judge("data "+key, "tenant data "+key+" JSON (null takes it away)", catalog.AdminPut{Data: &catalog.Data{Key: key, Value: rows.Data[key]}})
		}
	}
	return out
}
