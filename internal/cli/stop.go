package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
)

// stopped is the tenant data stop (schemas/tenant_data.schema.json).
type stopped struct {
	All     bool     `json:"all,omitempty"`
	Agents  []string `json:"agents,omitempty"`
	Servers []string `json:"servers,omitempty"`
	Reason  string   `json:"reason,omitempty"`
}

const stopKey = "stop"

func stopCommand(c *command) {
	var s stopped
	c.tenantFlags()
	every := c.Flags().Bool("all", false, "every tenant (operators of system)")
	c.Flags().StringArrayVar(&s.Agents, "agent", nil, "stop only this agent (repeatable)")
	_ = c.RegisterFlagCompletionFunc("agent", c.completes(c.schemaWords(catalog.KindAgent))) // the flag exists
	c.Flags().StringArrayVar(&s.Servers, "server", nil, "stop only what calls this skill server (repeatable)")
	c.Flags().StringVar(&s.Reason, "reason", "", "why, for the record")
	c.answer = func([]string) (answer, error) {
		s.All = len(s.Agents)+len(s.Servers) == 0
		if *every && (!s.All || c.tenant != "") {
			return answer{}, usage(errors.New("--all stops every tenant: it goes with no --tenant, --agent or --server"))
		}
		return c.eachTenant(*every, func(tenant string) (json.RawMessage, error) {
			next := s
			if !s.All { // beside what is stopped already; a stop of everything waits for no reading
				before, err := c.stoppedNow(tenant)
				if err != nil {
					return nil, err
				}
				next.All, next.Agents, next.Servers = before.All, union(before.Agents, s.Agents), union(before.Servers, s.Servers)
			}
			return json.Marshal(next)
		})
	}
}

func resumeCommand(c *command) {
	c.tenantFlags()
	every := c.Flags().Bool("all", false, "every tenant (operators of system)")
	c.answer = func([]string) (answer, error) {
		return c.eachTenant(*every, func(string) (json.RawMessage, error) { return json.RawMessage("null"), nil })
	}
}

// eachTenant puts the data stop of one tenant, or of every one.
func (c *command) eachTenant(every bool, value func(tenant string) (json.RawMessage, error)) (answer, error) {
	tenants := []string{c.tenant}
	if every {
		d, err := c.rebuildState()
		if err != nil {
			return answer{}, err
		}
		tenants = slices.DeleteFunc(d.Tenants(), func(t string) bool { return t == keydir.LocalTenant })
	}
	var out answer
	var all []put
	var errs []error
	for _, t := range tenants { // one that fails leaves none of the others as it was
		c.tenant = t
		var v json.RawMessage
		p, err := c.tenantIntent("admin.put", func(t string) (_ any, err error) {
			v, err = value(t)
			return catalog.AdminPut{Tenant: t, Data: &catalog.Data{Key: stopKey, Value: v}}, err
		})
		if err != nil {
			if every {
				err = fmt.Errorf("tenant %s: %w", t, err)
			}
			errs = append(errs, err)
			continue
		}
		all = append(all, p)
		one := p.answer()
		out.note += stands(p, v) + c.unmatched(p.tenant, func(where string) bool { return where == "data "+stopKey })
		out.data, out.text = one.data, out.text+one.text
	}
	if every {
		out.data = all
	}
	return out, errors.Join(errs...)
}

// stands says what is stopped in a tenant after a put.
func stands(p put, value json.RawMessage) string {
	var s stopped
	_ = json.Unmarshal(value, &s) // it was made here
	switch {
	case s.All:
		return "everything of tenant " + p.tenant + " is stopped: nothing begins until writ resume\n"
	case len(s.Agents)+len(s.Servers) > 0:
		return fmt.Sprintf("stopped in tenant %s until writ resume: agents %v, servers %v\n", p.tenant, s.Agents, s.Servers)
	case p.Changes != nil && len(*p.Changes) == 0:
		return "nothing was stopped in tenant " + p.tenant + "\n"
	default:
		return "tenant " + p.tenant + " goes on\n"
	}
}

// stoppedNow is what is stopped in a tenant.
func (c *command) stoppedNow(tenant string) (s stopped, err error) {
	d, err := c.rebuildState()
	if err != nil {
		return s, err
	}
	rows, _ := d.Rows(tenant)
	if value := rows.Data[stopKey]; value != nil {
		err = json.Unmarshal(value, &s)
	}
	return s, err
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
