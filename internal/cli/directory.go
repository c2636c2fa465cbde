package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/state"
)

// directoryCommands change and list what operators say of tenants: one command
// for each kind of row. A change is an order that the operator seals; a list is
// read from the record of the data directory, since the fold of the record is
// what the router decides on.
func directoryCommands(std IO) []*cobra.Command {
	return []*cobra.Command{tenantCommand(std), roleCommand(std), userCommand(std), apikeyCommand(std), skillCommand(std), grantCommand(std), orderCommand(std)}
}

func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: oneOfThese, RunE: help}
	cmd.AddCommand(commands...)
	return cmd
}

// tenantFlags are those of commands that act on one tenant.
type tenantFlags struct {
	operatorFlags
	tenant string
}

func (f *tenantFlags) add(cmd *cobra.Command) {
	f.operatorFlags.add(cmd)
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "tenant (default: the operator's own; of operators of system: default)")
}

// of is the tenant that an operator means.
func (f *tenantFlags) of(o *operator) string {
	switch {
	case f.tenant != "":
		return f.tenant
	case o.tenant == keydir.LocalTenant:
		return "default"
	}
	return o.tenant
}

// submit seals an order about the tenant that is meant.
func (f *tenantFlags) submit(ctx context.Context, std IO, typ string, args func(tenant string) any) error {
	a, _, err := f.seal(ctx, typ, args)
	if err != nil {
		return err
	}
	return f.printOrder(std, a)
}

func (f *tenantFlags) seal(ctx context.Context, typ string, args func(tenant string) any) (a *intents.Answer, tenant string, err error) {
	o, err := f.open(ctx)
	if err != nil {
		return nil, "", err
	}
	tenant = f.of(o)
	if err := o.foreign(tenant); err != nil {
		return nil, tenant, err
	}
	a, err = o.order(ctx, typ, args(tenant))
	return a, tenant, err
}

// folded reads the directory out of the record of a data directory.
func folded(ctx context.Context, dir string) (*state.State, error) {
	var d *state.State
	err := withArchive(ctx, dir, func(a *node.Archive) (err error) {
		if d, err = a.Directory(ctx); err != nil {
			return no(err)
		}
		return nil
	})
	return d, err
}

// listing is `writ … list`: what print shows of each tenant, or of the one named.
func listing(std IO, short string, print func(state.TenantRows) (rows any, lines []string)) *cobra.Command {
	var dir, tenant string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: short + ", from the record of the data directory", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := folded(cmd.Context(), dir)
			if err != nil {
				return err
			}
			tenants := d.Tenants()
			if tenant != "" {
				tenants = []string{tenant}
			}
			all := make(map[string]any, len(tenants))
			for _, t := range tenants {
				rows, ok := d.Rows(t)
				if !ok {
					return no(fmt.Errorf("no such tenant: %s", t))
				}
				data, lines := print(rows)
				all[t] = data
				for _, line := range lines {
					if !asJSON {
						fmt.Fprintf(std.Out, "%s\t%s\n", t, line)
					}
				}
			}
			if asJSON {
				return printJSON(std.Out, all)
			}
			return nil
		},
	}
	dataFlag(cmd, &dir)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().StringVar(&tenant, "tenant", "", "this tenant alone")
	return cmd
}

func tenantCommand(std IO) *cobra.Command {
	var f tenantFlags
	add := &cobra.Command{
		Use: "add ID", Short: "Make a tenant, with the default roles; operators of system only", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.tenant = args[0]
			return f.submit(cmd.Context(), std, "admin.put", func(string) any { return catalog.AdminPut{New: &catalog.Tenant{ID: args[0]}} })
		},
	}
	f.operatorFlags.add(add)
	return group("tenant", "Make and list tenants, and put their data", add, tenantData(std), listing(std, "List tenants with all that operators said of them", func(r state.TenantRows) (any, []string) {
		return r, []string{fmt.Sprintf("%d roles, %d users, %d API keys, %d skills", len(r.Roles), len(r.Users), len(r.APIKeys), len(r.Skills))}
	}))
}

func roleCommand(std IO) *cobra.Command {
	var f tenantFlags
	var capabilities []string
	set := &cobra.Command{
		Use: "put NAME --capability AREA:VERB …", Short: "Say which capabilities a role gives; without any it gives none", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.submit(cmd.Context(), std, "admin.put", func(t string) any {
				return catalog.AdminPut{Tenant: t, Role: &catalog.RoleData{Role: args[0], Capabilities: notNil(capabilities)}}
			})
		},
	}
	f.add(set)
	set.Flags().StringArrayVar(&capabilities, "capability", nil, "area:verb[:resource], * for all of a part (repeatable)")
	return group("role", "Put and list roles", set, listing(std, "List roles", func(r state.TenantRows) (any, []string) {
		var lines []string
		for _, x := range r.Roles {
			lines = append(lines, x.Role+"\t"+strings.Join(x.Capabilities, " "))
		}
		return r.Roles, lines
	}))
}

func userCommand(std IO) *cobra.Command {
	var f tenantFlags
	var roles []string
	var disabled bool
	set := &cobra.Command{
		Use: "put ID --role ROLE …", Short: "Say which roles a person has; a row cuts the roles of every API key", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.submit(cmd.Context(), std, "admin.put", func(t string) any {
				return catalog.AdminPut{Tenant: t, User: &catalog.User{UserID: args[0], Roles: notNil(roles), Disabled: disabled}}
			})
		},
	}
	f.add(set)
	set.Flags().StringArrayVar(&roles, "role", nil, "role of the tenant (repeatable)")
	set.Flags().BoolVar(&disabled, "disabled", false, "the person may do nothing, and their open plans end")
	return group("user", "Put and list people", set, listing(std, "List people", func(r state.TenantRows) (any, []string) {
		var lines []string
		for _, x := range r.Users {
			line := x.UserID + "\t" + strings.Join(x.Roles, " ")
			if x.Disabled {
				line += "\tdisabled"
			}
			lines = append(lines, line)
		}
		return r.Users, lines
	}))
}

func skillCommand(std IO) *cobra.Command {
	var f tenantFlags
	var digest, effect, server string
	var sure bool
	approve := &cobra.Command{
		Use: "approve NAME [--digest DIGEST] [--effect pure|idempotent|once]", Short: "Pin a skill's manifest: this version, of this server, and no other may be called", Args: cobra.ExactArgs(1),
		Long: "Pin a skill's manifest: this version, of this server, and no other may be called. Without\n" +
			"--digest it is the version that is declared now, which is shown beside the approved one\n" +
			"and asked about; the effect stays what it was.",
		ValidArgsFunction: skillNames(std),
		RunE: func(cmd *cobra.Command, args []string) error {
			if digest == "" {
				s, err := declaredNow(cmd, std, f, args[0], sure)
				if err != nil {
					return err
				}
				digest, server = s.now.Digest, s.now.Server
				if effect == "" {
					effect = s.pinned.Effect
				}
			}
			switch catalog.Effect(effect) {
			case catalog.Pure, catalog.Idempotent, catalog.Once:
			default:
				return &exitError{code: ExitUsage, err: fmt.Errorf("--effect: %q is none of pure, idempotent, once%s", effect, meant(effect, []string{"pure", "idempotent", "once"}))}
			}
			return f.submit(cmd.Context(), std, "skill.approve", func(t string) any {
				return catalog.SkillApprove{Tenant: t, Skill: args[0], Digest: digest, Effect: catalog.Effect(effect), Server: server}
			})
		},
	}
	f.add(approve)
	approve.Flags().StringVar(&digest, "digest", "", "sha256:<hex> of the manifest, as the log names it (default: the version declared now)")
	approve.Flags().BoolVar(&sure, "yes", false, "do not ask")
	approve.Flags().StringVar(&effect, "effect", "", "what a call does to the world: pure, idempotent, once")
	approve.Flags().StringVar(&server, "server", "", "whose tool it is, for lists; the digest binds it")
	return group("skill", "Approve, compare and list skills", approve, skillDiff(std), listing(std, "List approved skills", func(r state.TenantRows) (any, []string) {
		var lines []string
		for _, x := range r.Skills {
			lines = append(lines, x.Skill+"\t"+x.Digest+"\t"+x.Effect+"\t"+cmp.Or(printable(x.Server), "-"))
		}
		return r.Skills, lines
	}))
}

func grantCommand(std IO) *cobra.Command {
	var f tenantFlags
	var before string
	revoke := &cobra.Command{
		Use: "revoke USER", Short: "End a user's grants, plans and runs", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at := time.Now()
			if before != "" {
				var err error
				if at, err = time.Parse(time.RFC3339, before); err != nil {
					return &exitError{code: ExitUsage, err: fmt.Errorf("--before: %q is not an RFC 3339 time", before)}
				}
			}
			return f.submit(cmd.Context(), std, "grant.revoke", func(t string) any {
				return catalog.GrantRevoke{Tenant: t, Sub: args[0], Before: intents.FormatTime(at)}
			})
		},
	}
	f.add(revoke)
	revoke.Flags().StringVar(&before, "before", "", "grants minted before this RFC 3339 time (default: now)")
	return group("grant", "Revoke grants", revoke)
}

func orderCommand(std IO) *cobra.Command {
	var f operatorFlags
	var reason string
	resolve := &cobra.Command{
		Use: "resolve INTENT_ID done|failed --reason TEXT", Short: "Say how an indeterminate order ended, after having looked", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != string(intents.Done) && args[1] != string(intents.Failed) {
				return &exitError{code: ExitUsage, err: fmt.Errorf("%q is neither done nor failed", args[1])}
			}
			if reason == "" {
				return &exitError{code: ExitUsage, err: errors.New("--reason: say what you found; it is recorded")}
			}
			o, err := f.open(cmd.Context())
			if err != nil {
				return err
			}
			a, err := o.order(cmd.Context(), "order.resolve", catalog.OrderResolve{IntentID: args[0], Status: args[1], Reason: reason})
			if err != nil {
				return err
			}
			return f.printOrder(std, a)
		},
	}
	f.add(resolve)
	resolve.Flags().StringVar(&reason, "reason", "", "what you found; recorded")
	return group("order", "Resolve indeterminate orders, and erase what was in others", resolve, orderErase(std))
}

// notNil makes an empty list of none.
func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
