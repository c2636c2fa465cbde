package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state"
)

// The commands of this file change and list the directory: tenants, roles, users, API keys, skills
// and grants. A change is an intent that the operator signs. A list is read from the record of the
// data directory, which is also the basis of the router's decisions.

// tenantFlags declares the flags of a command that acts on one tenant.
func (c *command) tenantFlags() {
	c.operatorFlags()
	c.Flags().StringVar(&c.tenant, "tenant", "", "tenant (default: the operator's own; for operators of system: default)")
}

// tenantIntent signs and submits an intent about the tenant that is meant. It refuses to
// name another tenant where the router would: only operators of system may.
func (c *command) tenantIntent(typ string, args func(tenant string) (any, error)) (p put, err error) {
	o, err := c.operator()
	if err != nil {
		return p, err
	}
	tenant, err := c.tenantOf(o)
	if err != nil {
		return p, err
	}
	about, err := args(tenant)
	if err != nil {
		return p, err
	}
	a, err := c.submitAs(o, typ, about)
	if err != nil {
		return p, err
	}
	p = putBy(a)
	p.tenant, p.Changes = tenant, c.changesBy(o.Origin, tenant, a)
	return p, nil
}

// tenantOf is the tenant of an operator's intent.
func (c *command) tenantOf(o *operator) (tenant string, err error) {
	system := o.Tenant == keydir.LocalTenant
	switch tenant = c.tenant; {
	case tenant == "" && system:
		tenant = "default"
	case tenant == "":
		tenant = o.Tenant
	case tenant != o.Tenant && !system:
		err = fmt.Errorf("%s: %s is an operator of tenant %s: only operators of system may name another tenant (--tenant %s)", intents.RBACForbidden, o.Subject, o.Tenant, tenant)
	}
	return tenant, err
}

// puts submits the intent of a type about a tenant, and returns its changes.
func (c *command) puts(typ string, args func(tenant string) any) (answer, error) {
	p, err := c.tenantIntent(typ, func(tenant string) (any, error) { return args(tenant), nil })
	if err != nil {
		return answer{}, err
	}
	return p.answer(), nil
}

// unmatched lists the names in rows of a tenant that match nothing. Without the record of the data
// directory it lists none; doctor and the next start do.
func (c *command) unmatched(tenant string, there func(where string) bool) (text string) {
	d, err := c.rebuildState()
	if err != nil {
		return ""
	}
	versions, _ := approval.ReadVersions(c.dir) // without them those that are approved
	return warned(slices.DeleteFunc(datadir.UnmatchedNames(d, tenant, versions), func(u datadir.UnknownName) bool { return !there(u.Where) }))
}

func warned(names []datadir.UnknownName) (text string) {
	for _, u := range names {
		text += "warning: " + visible.Text(u.String(), "") + ", and has no effect: it is misspelt, or not there yet\n"
	}
	return text
}

// rebuildState reads the directory from the record of the data directory.
func (c *command) rebuildState() (d *state.State, err error) {
	err = c.archive(func(a *datadir.Archive) error {
		d, err = datadir.RebuildState(c.Context(), a.Records)
		return err
	})
	return d, err
}

// listing is `writ … list`, for all tenants or one of them: the rows of each, their text, and the
// text if there are none.
func (c *command) listing(named, none string, of func(state.TenantRows) any) {
	c.dataFlag()
	c.answer = func([]string) (answer, error) {
		d, err := c.rebuildState()
		if err != nil {
			return answer{}, err
		}
		tenants := d.Tenants()
		if c.tenant != "" {
			tenants = []string{c.tenant}
		}
		var text strings.Builder
		all := make(map[string]any, len(tenants))
		for _, t := range tenants {
			rows, ok := d.Rows(t)
			if !ok {
				return answer{}, fmt.Errorf("no such tenant: %s", t)
			}
			all[t] = of(rows)
			text.WriteString(render(named, tenantListing{rows, all[t]}))
		}
		return answer{data: all, text: text.String(), none: none}, nil
	}
	c.Flags().StringVar(&c.tenant, "tenant", "", "only this tenant")
}

// tenantListing is the rows of a tenant, and their text.
type tenantListing struct {
	state.TenantRows
	Notes any
}

func tenantAdd(c *command) {
	c.operatorFlags()
	c.answer = func(args []string) (answer, error) {
		c.tenant = args[0]
		return c.puts("admin.put", func(string) any { return catalog.AdminPut{New: &catalog.Tenant{ID: args[0]}} })
	}
}

// tenantData puts the data that policies read about a tenant (docs/policies.md): the calls that
// people must approve, the allowed skills, the limits.
func tenantData(c *command) {
	c.tenantFlags()
	c.answer = func(args []string) (answer, error) {
		if !json.Valid([]byte(args[1])) {
			return answer{}, malformed(errors.New("JSON: the value is not JSON; quote it for the shell"))
		}
		p, err := c.tenantIntent("admin.put", func(t string) (any, error) {
			return catalog.AdminPut{Tenant: t, Data: &catalog.Data{Key: args[0], Value: json.RawMessage(args[1])}}, nil
		})
		if err != nil {
			return answer{}, err
		}
		out := p.answer()
		out.note += c.unmatched(p.tenant, func(where string) bool { return where == "data "+args[0] })
		return out, nil
	}
}

func rolePut(c *command) {
	c.tenantFlags()
	capabilities := c.Flags().StringArray("capability", nil, "area:verb[:resource], * for all of a part (repeatable)")
	c.answer = func(args []string) (answer, error) {
		return c.puts("admin.put", func(t string) any {
			return catalog.AdminPut{Tenant: t, Role: &catalog.RoleData{Role: args[0], Capabilities: notNil(*capabilities)}}
		})
	}
}

func userPut(c *command) {
	c.tenantFlags()
	roles := c.Flags().StringArray("role", nil, "role of the tenant (repeatable)")
	disabled := c.Flags().Bool("disabled", false, "the user may do nothing, and open plans of the user end")
	c.answer = func(args []string) (answer, error) {
		return c.puts("admin.put", func(t string) any {
			return catalog.AdminPut{Tenant: t, User: &catalog.User{UserID: args[0], Roles: notNil(*roles), Disabled: *disabled}}
		})
	}
}

func apikeyCreate(c *command) {
	var row catalog.APIKey
	c.tenantFlags()
	c.answer = func(args []string) (answer, error) {
		key := keydir.NewAPIKey()
		row.ID, row.Hash, row.MaxRoles = args[0], intents.Digest([]byte(key)), notNil(row.MaxRoles)
		p, err := c.tenantIntent("admin.put", func(t string) (any, error) {
			return catalog.AdminPut{Tenant: t, APIKey: &row}, nil
		})
		if err != nil {
			return answer{}, err
		}
		note := fmt.Sprintf("API key %s of user %s in tenant %s. It is shown only this once; only its hash %s was sent\n", row.ID, row.UserID, p.tenant, row.Hash)
		note += p.text() + c.unmatched(p.tenant, func(where string) bool { return where == "API key "+row.ID })
		return answer{text: key + "\n", note: note, data: struct {
			put
			Key    string `json:"key"`
			ID     string `json:"id"`
			Hash   string `json:"hash"`
			Tenant string `json:"tenant"`
		}{p, key, row.ID, row.Hash, p.tenant}}, nil
	}
	c.Flags().StringVar(&row.UserID, "user", "", "user that the key belongs to")
	c.Flags().StringArrayVar(&row.MaxRoles, "role", nil, "role that the key may use; no other is allowed (repeatable)")
	c.Flags().BoolVar(&row.MayAssertUser, "may-assert-user", false, "the holder authenticates users itself and may name them")
	c.Flags().BoolVar(&row.FrontEnd, "front-end", false, "the holder is a chat program: its prompts for titles and the like need no plan, and hanging up stops a plan")
	c.Flags().BoolVar(&row.InPerson, "in-person", false, "the holder is a person in the console or a terminal: MCP and OpenAI endpoints refuse the key")
	c.Flags().StringArrayVar(&row.Tools, "tool", nil, "skill, or <server>.*, that may be called with the key, also by agents, workflows and schedules; without it all (repeatable)")
	c.Flags().StringToStringVar(&row.Rename, "rename", nil, "SKILL=NAME: the name of the skill's tool for MCP clients with the key (repeatable)")
	c.Flags().StringToStringVar(&row.Group, "group", nil, "SKILL=GROUP, or 'SERVER.*=GROUP': names of the other tools begin with GROUP__ (repeatable)")
	c.mustGive("user")
}

func apikeyRevoke(c *command) {
	c.tenantFlags()
	hash := c.Flags().String("hash", "", "sha256:<hex> of the key")
	user := c.Flags().String("user", "", "user that the key belongs to")
	c.answer = func(args []string) (answer, error) {
		if (*hash == "") != (*user == "") {
			return answer{}, usage(errors.New("--hash and --user go together"))
		}
		p, err := c.tenantIntent("admin.put", func(tenant string) (any, error) {
			row := catalog.APIKey{ID: args[0], Hash: *hash, UserID: *user, MaxRoles: []string{}}
			if *hash == "" {
				d, err := c.rebuildState()
				if err != nil {
					return nil, err
				}
				rows, _ := d.Rows(tenant)
				i := slices.IndexFunc(rows.APIKeys, func(k catalog.APIKey) bool { return k.ID == args[0] && !k.Revoked })
				if i < 0 {
					return nil, fmt.Errorf("tenant %s has no API key %s that is not revoked: see writ apikey list", tenant, args[0])
				}
				row = rows.APIKeys[i]
			}
			row.Revoked = true
			return catalog.AdminPut{Tenant: tenant, APIKey: &row}, nil
		})
		if err != nil {
			return answer{}, err
		}
		return p.answer(), nil
	}
}

func grantRevoke(c *command) {
	var before time.Time
	c.tenantFlags()
	c.answer = func(args []string) (answer, error) {
		if before.IsZero() {
			before = time.Now()
		}
		p, err := c.tenantIntent("grant.revoke", func(t string) (any, error) {
			return catalog.GrantRevoke{Tenant: t, Sub: args[0], Before: intents.FormatTime(before)}, nil
		})
		if err != nil {
			return answer{}, err
		}
		p.Changes = nil
		note := fmt.Sprintf("grants of user %s of tenant %s that were issued before %s are refused, and the plans and runs under them end\n", args[0], p.tenant, intents.FormatTime(before))
		return answer{data: p, text: p.IntentID + "\n", note: note}, nil
	}
	c.Flags().Var(&timeFlag{at: &before}, "before", "revoke grants issued before this RFC 3339 time (default: now)")
}

// notNil makes an empty list of none.
func notNil(list []string) []string { return append([]string{}, list...) }
