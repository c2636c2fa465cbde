package cli

import (
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/router"
)

// configFlags declares the flags of the configuration. load reads it: the flags
// that were given over environment over file (docs/configuration.md).
func configFlags(cmd *cobra.Command) (load func(env func(string) string) (config.Config, error)) {
	var file string
	flags := config.Default()
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration file (default writ.yaml, if there is one)")
	for _, s := range config.Settings {
		if s.Secret {
			continue
		}
		switch to := s.Bind(&flags).(type) {
		case *string:
			f.StringVar(to, s.Flag(), *to, s.Help)
		case *int:
			f.IntVar(to, s.Flag(), *to, s.Help)
		case *[]string:
			f.StringArrayVar(to, s.Flag(), nil, s.Help+" (repeatable)")
		}
	}
	return func(env func(string) string) (config.Config, error) {
		c, err := config.Load(file, env)
		if err != nil {
			return c, err
		}
		for _, s := range config.Settings {
			if f.Changed(s.Flag()) {
				s.Copy(&c, &flags)
			}
		}
		return c, nil
	}
}

// configFile is where the configuration may stand; its file need not be there.
func configFile(cmd *cobra.Command) string {
	if f := cmd.Flags().Lookup("config"); f != nil && f.Value.String() != "" {
		return f.Value.String()
	}
	return "writ.yaml"
}

// limits of a configuration, in which 0 is none.
func limits(c config.Config) node.Limits {
	none := func(n int) int {
		if n == 0 {
			return -1
		}
		return n
	}
	return node.Limits{
		Requests: none(c.RateLimit), Window: time.Duration(c.RateWindowMS) * time.Millisecond,
		Rates:     router.Rates{Signer: none(c.SignerRate), Tenant: none(c.TenantRate)},
		UserHolds: none(c.UserHolds), TenantHolds: none(c.TenantHolds),
		PageCache: int64(c.PageCacheMB) << 20, FreeFloor: int64(none(c.FreeDiskMB)) << 20, TenantDisk: int64(none(c.TenantDiskMB)) << 20,
	}
}
