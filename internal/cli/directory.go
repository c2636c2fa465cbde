package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
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
func (f *tenantFlags) submit(ctx context.Context, typ string, args func(tenant string) any) (answer, error) {
	a, _, err := f.seal(ctx, typ, args)
	if err != nil {
		return answer{}, err
	}
	return ordered(a), nil
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
	err := withArchive(ctx, dir, func(a *datadir.Archive) (err error) {
		if d, err = datadir.Fold(ctx, a.Records); err != nil {
			return no(err)
		}
		return nil
	})
	return d, err
}

// listing is `writ … list`: what print shows of each tenant, or of the one named.
func listing(std IO, short string, print func(state.TenantRows) (rows any, lines []string)) *cobra.Command {
	var dir, tenant string
	cmd := answering(std, &cobra.Command{
		Use: "list", Short: short + ", from the record of the data directory", Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		d, err := folded(cmd.Context(), dir)
		if err != nil {
			return answer{}, err
		}
		tenants := d.Tenants()
		if tenant != "" {
			tenants = []string{tenant}
		}
		var text strings.Builder
		all := make(map[string]any, len(tenants))
		for _, t := range tenants {
			rows, ok := d.Rows(t)
			if !ok {
				return answer{}, no(fmt.Errorf("no such tenant: %s", t))
			}
			data, lines := print(rows)
			all[t] = data
			for _, line := range lines {
				text.WriteString(t + "\t" + line + "\n")
			}
		}
		return answer{data: all, text: text.String()}, nil
	}, dataFlag(&dir))
	cmd.Flags().StringVar(&tenant, "tenant", "", "this tenant alone")
	return cmd
}

func tenantCommand(std IO) *cobra.Command {
	var f tenantFlags
	add := answering(std, &cobra.Command{
		Use: "add ID", Short: "Make a tenant, with the default roles; operators of system only", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		f.tenant = args[0]
		return f.submit(cmd.Context(), "admin.put", func(string) any { return catalog.AdminPut{New: &catalog.Tenant{ID: args[0]}} })
	})
	f.operatorFlags.add(add)
	return group("tenant", "Make and list tenants, and put their data", add, tenantData(std), listing(std, "List tenants with all that operators said of them", func(r state.TenantRows) (any, []string) {
		return r, []string{fmt.Sprintf("%d roles, %d users, %d API keys, %d skills", len(r.Roles), len(r.Users), len(r.APIKeys), len(r.Skills))}
	}))
}

func roleCommand(std IO) *cobra.Command {
	var f tenantFlags
	var capabilities []string
	set := answering(std, &cobra.Command{
		Use: "put NAME --capability AREA:VERB …", Short: "Say which capabilities a role gives; without any it gives none", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		return f.submit(cmd.Context(), "admin.put", func(t string) any {
			return catalog.AdminPut{Tenant: t, Role: &catalog.RoleData{Role: args[0], Capabilities: notNil(capabilities)}}
		})
	})
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
	set := answering(std, &cobra.Command{
		Use: "put ID --role ROLE …", Short: "Say which roles a person has; a row cuts the roles of every API key", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		return f.submit(cmd.Context(), "admin.put", func(t string) any {
			return catalog.AdminPut{Tenant: t, User: &catalog.User{UserID: args[0], Roles: notNil(roles), Disabled: disabled}}
		})
	})
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
	approve := answering(std, &cobra.Command{
		Use: "approve NAME [--digest DIGEST] [--effect pure|idempotent|once]", Short: "Pin a skill's manifest: this version, of this server, and no other may be called", Args: cobra.ExactArgs(1),
		Long: "Pin a skill's manifest: this version, of this server, and no other may be called. Without\n" +
			"--digest it is the version that is declared now, which is shown beside the approved one\n" +
			"and asked about; the effect stays what it was.",
		ValidArgsFunction: skillNames(std),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		if digest == "" {
			s, err := declaredNow(cmd, std, f, args[0], sure)
			if err != nil {
				return answer{}, err
			}
			digest, server = s.now.Digest, s.now.Server
			if effect == "" {
				effect = s.pinned.Effect
			}
		}
		switch catalog.Effect(effect) {
		case catalog.Pure, catalog.Idempotent, catalog.Once:
		default:
			return answer{}, usage(fmt.Errorf("--effect: %q is none of pure, idempotent, once%s", effect, meant(effect, []string{"pure", "idempotent", "once"})))
		}
		return f.submit(cmd.Context(), "skill.approve", func(t string) any {
			return catalog.SkillApprove{Tenant: t, Skill: args[0], Digest: digest, Effect: catalog.Effect(effect), Server: server}
		})
	})
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
	var before time.Time
	revoke := answering(std, &cobra.Command{
		Use: "revoke USER", Short: "End a user's grants, plans and runs", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		if before.IsZero() {
			before = time.Now()
		}
		return f.submit(cmd.Context(), "grant.revoke", func(t string) any {
			return catalog.GrantRevoke{Tenant: t, Sub: args[0], Before: intents.FormatTime(before)}
		})
	})
	f.add(revoke)
	revoke.Flags().Var(&timeFlag{at: &before}, "before", "grants issued before this RFC 3339 time (default: now)")
	return group("grant", "Revoke grants", revoke)
}

func orderCommand(std IO) *cobra.Command {
	var f operatorFlags
	var reason string
	resolve := answering(std, &cobra.Command{
		Use: "resolve INTENT_ID done|failed --reason TEXT", Short: "Say how an indeterminate order ended, after having looked", Args: cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		if args[1] != string(intents.Done) && args[1] != string(intents.Failed) {
			return answer{}, usage(fmt.Errorf("%q is neither done nor failed", args[1]))
		}
		if reason == "" {
			return answer{}, usage(errors.New("--reason: say what you found; it is recorded"))
		}
		o, err := f.open(cmd.Context())
		if err != nil {
			return answer{}, err
		}
		a, err := o.order(cmd.Context(), "order.resolve", catalog.OrderResolve{IntentID: args[0], Status: args[1], Reason: reason})
		if err != nil {
			return answer{}, err
		}
		return ordered(a), nil
	})
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

// tenantData puts what policies read of a tenant (docs/policies.md): what its
// people must approve, which skills it allows, its bounds.
func tenantData(std IO) *cobra.Command {
	var f tenantFlags
	return answering(std, &cobra.Command{
		Use: "data KEY JSON", Short: "Put data of a tenant for policies, such as approval or skills_allow", Args: cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		if !json.Valid([]byte(args[1])) {
			return answer{}, malformed(errors.New("JSON: the value is not JSON; quote it for the shell"))
		}
		return f.submit(cmd.Context(), "admin.put", func(t string) any {
			return catalog.AdminPut{Tenant: t, Data: &catalog.Data{Key: args[0], Value: json.RawMessage(args[1])}}
		})
	}, f.add)
}
