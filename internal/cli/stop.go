package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
)

func stopCommand(c *command) {
	var s catalog.AdminStop
	c.tenantFlags()
	every := c.Flags().Bool("all", false, "every tenant (operators of system)")
	c.Flags().StringArrayVar(&s.Agents, "agent", nil, "stop only this agent (repeatable)")
	_ = c.RegisterFlagCompletionFunc("agent", c.completes(c.schemaWords(catalog.KindAgent))) // the flag exists
	c.Flags().StringArrayVar(&s.Servers, "server", nil, "stop only what calls this skill server (repeatable)")
	c.Flags().StringVar(&s.Reason, "reason", "", "why: everybody of the tenant reads it")
	c.answer = func([]string) (answer, error) {
		s.All = len(s.Agents)+len(s.Servers) == 0
		if *every && (!s.All || c.tenant != "") {
			return answer{}, usage(errors.New("--all stops every tenant: it goes with no --tenant, --agent or --server"))
		}
		return c.eachTenant(*every, s)
	}
}

func resumeCommand(c *command) {
	c.tenantFlags()
	every := c.Flags().Bool("all", false, "every tenant (operators of system)")
	c.answer = func([]string) (answer, error) {
		return c.eachTenant(*every, catalog.AdminStop{Resume: true})
	}
}

// eachTenant stops one tenant, or every one, or lets it go on.
func (c *command) eachTenant(every bool, s catalog.AdminStop) (answer, error) {
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
		p, err := c.tenantIntent(catalog.TypeAdminStop, func(t string) (any, error) {
			s.Tenant = t
			return s, nil
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
		out.note += stopDone(p, s) + c.unmatched(p.tenant, func(where string) bool { return where == "data "+catalog.KeyStop })
		out.data, out.text = one.data, out.text+one.text
	}
	if every {
		out.data = all
	}
	return out, errors.Join(errs...)
}

// stopDone says what an intent has done.
func stopDone(p put, s catalog.AdminStop) string {
	switch {
	case s.Resume && p.Changes != nil && len(*p.Changes) == 0:
		return "nothing was stopped in tenant " + p.tenant + "\n"
	case s.Resume:
		return "tenant " + p.tenant + " goes on\n"
	default:
		stopped := catalog.Stopped{}.Add(s, catalog.Stop{}).Stops()[0].What
		return strings.ToUpper(stopped[:1]) + stopped[1:] + " of tenant " + p.tenant + " is stopped until writ resume\n"
	}
}
