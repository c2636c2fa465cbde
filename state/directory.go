package state

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Directory is the directory data in force at a position: roles, users, pins, data and API keys
// of every tenant. A directory that was handed out is never changed: the next change makes
// another. Safe for concurrent use.
type Directory struct {
	at      int64 // position of the record that made it
	tenants map[string]*tenant
	own     map[string]bool // tenants that no other directory shares
	shared  atomic.Bool     // it was handed out
}

// tenant is the directory data of one tenant.
type tenant struct {
	Roles map[string][]string     `json:"roles"`
	Users map[string]catalog.User `json:"users"`
	Pins  map[string]intents.Pin  `json:"pins"`
	// Inputs are the input schemas of pinned skills, of those that have one.
	Inputs map[string]json.RawMessage `json:"inputs,omitempty"`
	// Names are the names of tools for models and MCP clients, by skill. A revoked skill keeps its own.
	Names map[string]string `json:"names,omitempty"`
	// Revoked are skills that were approved and no longer are.
	Revoked map[string]bool            `json:"revoked,omitempty"`
	Data    map[string]json.RawMessage `json:"data"`
	Keys    map[string]catalog.APIKey  `json:"keys"` // by id, without revoked ones
}

// apiKeyRow is an API key with the tenant that put it.
type apiKeyRow struct {
	catalog.APIKey
	Tenant string
	At     time.Time // of the record that put it
}

func newDirectory() *Directory {
	return &Directory{tenants: make(map[string]*tenant), own: make(map[string]bool)}
}

func newTenant() *tenant {
	return &tenant{
		Roles: make(map[string][]string), Users: make(map[string]catalog.User), Pins: make(map[string]intents.Pin), Inputs: make(map[string]json.RawMessage),
		Data: make(map[string]json.RawMessage), Keys: make(map[string]catalog.APIKey),
	}
}

func (t *tenant) clone() *tenant {
	return &tenant{
		Roles: maps.Clone(t.Roles), Users: maps.Clone(t.Users), Pins: maps.Clone(t.Pins), Inputs: maps.Clone(t.Inputs), Names: maps.Clone(t.Names), Revoked: maps.Clone(t.Revoked),
		Data: maps.Clone(t.Data), Keys: maps.Clone(t.Keys),
	}
}

// Directory is the directory data in force.
func (s *State) Directory() *Directory {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.dir.shared.Store(true)
	return s.dir
}

// change returns the tenant that a record at a position changes, and makes it if it does not
// exist. The lock is held for writing.
func (s *State) change(id string, at int64) *tenant {
	d := s.another(at)
	if !d.own[id] {
		t := newTenant()
		if there := d.tenants[id]; there != nil {
			t = there.clone()
		}
		d.tenants[id], d.own[id] = t, true
	}
	return d.tenants[id]
}

// another returns a directory that may be changed. The lock is held for writing.
func (s *State) another(at int64) *Directory {
	if s.dir.shared.Load() {
		s.dir = &Directory{tenants: maps.Clone(s.dir.tenants), own: make(map[string]bool)}
	}
	s.dir.at = at
	return s.dir
}

// begin makes a tenant that begins with these roles, and replaces any existing one.
func (s *State) begin(id string, roles []catalog.RoleData, at int64) *tenant {
	t := s.change(id, at)
	*t = *newTenant()
	for _, r := range roles {
		t.Roles[r.Role] = r.Capabilities
	}
	return t
}

// At is the position of the record that made the directory.
func (d *Directory) At() int64 { return d.at }

// Capabilities of roles in a tenant; known is false for a tenant that does not exist.
func (d *Directory) Capabilities(tenant string, roles []string) (caps []string, known bool) {
	t, ok := d.tenants[tenant]
	if !ok {
		return nil, false
	}
	return t.capabilities(roles), true
}

func (t *tenant) capabilities(roles []string) (caps []string) {
	if len(roles) == 1 {
		return slices.Clip(t.Roles[roles[0]])
	}
	for _, r := range roles {
		caps = append(caps, t.Roles[r]...)
	}
	return caps
}

// UserRoles of a user with a row; found is false without one.
func (d *Directory) UserRoles(tenant, user string) (roles []string, found, disabled bool) {
	t, ok := d.tenants[tenant]
	if !ok {
		return nil, false, false
	}
	u, ok := t.Users[user]
	return u.Roles, ok, u.Disabled
}

// Pin of a skill in a tenant.
func (d *Directory) Pin(tenant, skill string) (intents.Pin, bool) {
	t, ok := d.tenants[tenant]
	if !ok {
		return intents.Pin{}, false
	}
	p, ok := t.Pins[skill]
	return p, ok
}

// RolesNow reduces roles to what the API key of a caller, if it has one, and the user's row allow; a user
// without a row retains what the key allows. disabled: the key was revoked, the user was
// disabled, or the key may no longer act for the user.
func (d *Directory) RolesNow(tenant, user, keyID string, roles []string) (kept []string, disabled bool) {
	t, ok := d.tenants[tenant]
	if !ok {
		return nil, true
	}
	if keyID != "" && !intents.IsCallerByToken(keyID) { // the settings bound the roles of a token
		key, ok := t.Keys[keyID]
		if !ok || key.UserID != user && !key.MayAssertUser {
			return nil, true
		}
		roles = intersect(roles, key.MaxRoles)
	}
	if u, ok := t.Users[user]; ok {
		if u.Disabled {
			return nil, true
		}
		roles = intersect(roles, u.Roles)
	}
	return roles, false
}

func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return !slices.Contains(b, x) })
}

// without returns the elements of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return slices.Contains(b, x) })
}

// Tenant is the directory data of one tenant. Two that are equal have the same data; a change of
// another tenant makes no other.
type Tenant struct {
	id   string
	data *tenant // nil: it does not exist
}

// Tenant returns the data of a tenant.
func (d *Directory) Tenant(id string) Tenant { return Tenant{id, d.tenants[id]} }

// PolicyData returns the data as policies see it.
func (t Tenant) PolicyData() intents.PolicyData {
	if t.data == nil {
		return intents.PolicyData{}
	}
	out := intents.PolicyData{
		Tenants: map[string]map[string]json.RawMessage{t.id: t.data.Data}, Roles: map[string]map[string][]string{t.id: t.data.Roles},
	}
	pins := make(map[string]intents.SkillInput, len(t.data.Pins))
	for name, p := range t.data.Pins {
		pins[name] = p.Input()
	}
	out.Pins = map[string]map[string]intents.SkillInput{t.id: pins}
	if approvers := t.data.approvers(); len(approvers) > 0 {
		out.Approvers = map[string][]string{t.id: approvers}
	}
	return out
}

// TenantRows are the directory data of one tenant, as operators put them, sorted.
type TenantRows struct {
	Tenant   string                     `json:"tenant"`
	Roles    []catalog.RoleData         `json:"roles"`
	Users    []catalog.User             `json:"users"`
	APIKeys  []catalog.APIKey           `json:"api_keys"` // including revoked ones
	Skills   []intents.Pin              `json:"skills"`
	Data     map[string]json.RawMessage `json:"data"`
	Registry *Registry                  `json:"registry,omitempty"`

	Inputs map[string]json.RawMessage `json:"-"` // input schemas of skills
}

// Rows returns the rows of a tenant; false if the tenant does not exist.
func (s *State) Rows(id string) (TenantRows, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, ok := s.dir.tenants[id]
	if !ok {
		return TenantRows{}, false
	}
	out := TenantRows{Tenant: id, Roles: []catalog.RoleData{}, Users: []catalog.User{}, APIKeys: []catalog.APIKey{}, Skills: []intents.Pin{}, Data: maps.Clone(t.Data), Registry: s.registryOf(id), Inputs: maps.Clone(t.Inputs)}
	for _, name := range slices.Sorted(maps.Keys(t.Roles)) {
		out.Roles = append(out.Roles, catalog.RoleData{Role: name, Capabilities: slices.Clone(t.Roles[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Users)) {
		out.Users = append(out.Users, t.Users[name])
	}
	for _, name := range slices.Sorted(maps.Keys(t.Pins)) {
		out.Skills = append(out.Skills, t.Pins[name])
	}
	for _, k := range s.apiKeys {
		if k.Tenant == id {
			out.APIKeys = append(out.APIKeys, k.APIKey)
		}
	}
	slices.SortFunc(out.APIKeys, func(a, b catalog.APIKey) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Hash, b.Hash)) })
	return out, true
}

// KeysOf returns the API keys that are a user's own, by id, without hashes.
func (d *Directory) KeysOf(tenant, user string) []catalog.APIKey {
	out := []catalog.APIKey{}
	if t, ok := d.tenants[tenant]; ok {
		for _, id := range slices.Sorted(maps.Keys(t.Keys)) {
			if k := t.Keys[id]; k.UserID == user {
				k.Hash = ""
				out = append(out, k)
			}
		}
	}
	return out
}

// Tenants of the directory, sorted.
func (s *State) Tenants() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.dir.tenants))
}

// APIKey finds an API key by the hash of its text.
func (s *State) APIKey(hash string) (key catalog.APIKey, tenant string, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	row, ok := s.apiKeys[hash]
	if !ok || row.Revoked {
		return catalog.APIKey{}, "", false
	}
	return row.APIKey, row.Tenant, true
}

// HasOperator reports whether a person of a tenant has an operator's key in force.
func (s *State) HasOperator(tenant, user string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.hasOperator(tenant, user)
}

func (s *State) hasOperator(tenant, user string) bool {
	for _, k := range s.keys {
		if k.Role == intents.RoleOperator && k.Tenant == tenant && k.Subject == user && !k.Revoked {
			return true
		}
	}
	return false
}

// HasAPIKeys reports whether any API key was ever put.
func (s *State) HasAPIKeys() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.keyed
}

// directory is the directory data in force. It adds those of the tenant to the decision's reads.
func (v *View) directory(tenant string) *Directory {
	v.s.mu.RLock()
	defer v.s.mu.RUnlock()
	v.addRead(SubjectTenant(tenant))
	if v.dir != nil {
		return v.dir
	}
	v.s.dir.shared.Store(true)
	return v.s.dir
}

// Capabilities of roles in a tenant; known is false for a tenant that does not exist.
func (v *View) Capabilities(tenant string, roles []string) (caps []string, known bool) {
	return v.directory(tenant).Capabilities(tenant, roles)
}

// UserRoles of a user with a row; found is false without one.
func (v *View) UserRoles(tenant, user string) (roles []string, found, disabled bool) {
	return v.directory(tenant).UserRoles(tenant, user)
}

// RolesNow are the roles of a grant that API key and user row still allow: the grant contains
// those of the time when it was issued. disabled: see Directory.RolesNow.
func (v *View) RolesNow(g *intents.Grant) (roles []string, disabled bool) {
	return v.directory(g.Tenant).RolesNow(g.Tenant, g.Subject, intents.KeyOfClient(g.Act.Client), g.Roles)
}

// Pin of a skill in a tenant.
func (v *View) Pin(tenant, skill string) (intents.Pin, bool) {
	return v.directory(tenant).Pin(tenant, skill)
}

// Pins of a tenant, by name.
func (v *View) Pins(tenant string) []intents.Pin {
	t, ok := v.directory(tenant).tenants[tenant]
	if !ok {
		return nil
	}
	out := make([]intents.Pin, 0, len(t.Pins))
	for _, name := range slices.Sorted(maps.Keys(t.Pins)) {
		out = append(out, t.Pins[name])
	}
	return out
}

// SkillRevoked reports whether a skill of a tenant was approved and no longer is.
func (v *View) SkillRevoked(tenant, skill string) bool {
	t, ok := v.directory(tenant).tenants[tenant]
	return ok && t.Revoked[skill]
}

// TenantData is a tenant's data as policies see it. Do not modify it.
func (v *View) TenantData(tenant string) map[string]json.RawMessage {
	t, ok := v.directory(tenant).tenants[tenant]
	if !ok {
		return nil
	}
	return t.Data
}
