package cli

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
)

func apikeyCommand(std IO) *cobra.Command {
	return group("apikey", "Make, list and revoke API keys", apikeyCreate(std), apikeyRevoke(std), listing(std, "List API keys", func(r state.TenantRows) (any, []string) {
		var lines []string
		for _, x := range r.APIKeys {
			line := x.ID + "\t" + x.UserID + "\t" + strings.Join(x.MaxRoles, " ")
			if x.MayAssertUser {
				line += "\tmay assert users"
			}
			if x.Revoked {
				line += "\trevoked"
			}
			lines = append(lines, line)
		}
		return r.APIKeys, lines
	}))
}

func apikeyCreate(std IO) *cobra.Command {
	var f tenantFlags
	row := catalog.APIKey{}
	cmd := answering(std, &cobra.Command{
		Use: "create ID --user USER --role ROLE …", Short: "Make an API key; it is printed once", Args: cobra.ExactArgs(1),
		Long: "Make an API key on this machine and put its hash in force. The key itself is sent\n" +
			"nowhere and printed once, when the order is durable.",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		var secret [32]byte
		_, _ = rand.Read(secret[:]) // crypto/rand.Read never fails
		key := "writ_" + base64.RawURLEncoding.EncodeToString(secret[:])
		row.ID, row.Hash, row.MaxRoles = args[0], intents.Digest([]byte(key)), notNil(row.MaxRoles)
		a, tenant, err := f.seal(cmd.Context(), "admin.put", func(t string) any { return catalog.AdminPut{Tenant: t, APIKey: &row} })
		if err != nil {
			return answer{}, err
		}
		return answer{data: struct {
			put
			Key    string `json:"key"`
			ID     string `json:"id"`
			Hash   string `json:"hash"`
			Tenant string `json:"tenant"`
		}{putBy(a), key, row.ID, row.Hash, tenant}, text: key + "\n", note: fmt.Sprintf("key %s of user %s in tenant %s, shown this once; only its hash %s was sent\n", row.ID, row.UserID, tenant, row.Hash)}, nil
	}, f.add)
	cmd.Flags().StringVar(&row.UserID, "user", "", "whom the key stands for")
	cmd.Flags().StringArrayVar(&row.MaxRoles, "role", nil, "most that its user may have (repeatable)")
	cmd.Flags().BoolVar(&row.MayAssertUser, "may-assert-user", false, "its holder authenticates people and may name them")
	mustGive(cmd, "user")
	return cmd
}

func apikeyRevoke(std IO) *cobra.Command {
	var f tenantFlags
	var hash, user string
	cmd := answering(std, &cobra.Command{
		Use: "revoke ID", Short: "Revoke an API key", Args: cobra.ExactArgs(1),
		Long: "Revoke an API key. Its row is looked up in the record of the data directory; without\n" +
			"one, give --hash and --user as `apikey create` told them.",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		if (hash == "") != (user == "") {
			return answer{}, usage(errors.New("--hash and --user go together"))
		}
		o, err := f.open(cmd.Context())
		if err != nil {
			return answer{}, err
		}
		tenant := f.of(o)
		if err := o.foreign(tenant); err != nil {
			return answer{}, err
		}
		row := catalog.APIKey{ID: args[0], Hash: hash, UserID: user, MaxRoles: []string{}}
		if hash == "" {
			d, err := folded(cmd.Context(), f.data)
			if err != nil {
				return answer{}, err
			}
			rows, _ := d.Rows(tenant)
			i := slices.IndexFunc(rows.APIKeys, func(k catalog.APIKey) bool { return k.ID == args[0] && !k.Revoked })
			if i < 0 {
				return answer{}, no(fmt.Errorf("tenant %s has no API key %s that is not revoked: see writ apikey list", tenant, args[0]))
			}
			row = rows.APIKeys[i]
		}
		row.Revoked = true
		a, err := o.order(cmd.Context(), "admin.put", catalog.AdminPut{Tenant: tenant, APIKey: &row})
		if err != nil {
			return answer{}, err
		}
		return ordered(a), nil
	}, f.add)
	cmd.Flags().StringVar(&hash, "hash", "", "sha256:<hex> of the key")
	cmd.Flags().StringVar(&user, "user", "", "whom the key stands for")
	return cmd
}
