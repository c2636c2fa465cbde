package cli

import (
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents/catalog"
)

// tenantData puts what policies read of a tenant (docs/policies.md): what its
// people must approve, which skills it allows, its bounds.
func tenantData(std IO) *cobra.Command {
	var f tenantFlags
	cmd := answering(std, &cobra.Command{
		Use: "data KEY JSON", Short: "Put data of a tenant for policies, such as approval or skills_allow", Args: cobra.ExactArgs(2),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		if !json.Valid([]byte(args[1])) {
			return answer{}, malformed(errors.New("JSON: the value is not JSON; quote it for the shell"))
		}
		return f.submit(cmd.Context(), "admin.put", func(t string) any {
			return catalog.AdminPut{Tenant: t, Data: &catalog.Data{Key: args[0], Value: json.RawMessage(args[1])}}
		})
	})
	f.add(cmd)
	return cmd
}
