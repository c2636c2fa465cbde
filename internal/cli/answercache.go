package cli

import (
	"errors"
	"fmt"
	"net/http"

	"aob.dev/writ/intents/catalog"
)

var cacheRows = []row{
	{use: "stats", short: "Count the answers that your calls would get, and name the newest", make: asks(request[catalog.CacheStatsResult]{
		path: "/agent/cache", text: shown[catalog.CacheStatsResult]("cached.table"),
	})},
	{use: "clear SCOPE KEY", short: "Forget answers: of a run or plan (workflow), of a skill, or one (key)", make: asks(request[catalog.CacheInvalidateResult]{
		method: http.MethodPost, path: "/agent/cache/invalidate", body: cacheClear,
		text: func(_ []string, got catalog.CacheInvalidateResult) string {
			return fmt.Sprintf("%d answers removed\n", got.Removed)
		},
	})},
}

func cacheClear(c *command) func(args []string) (any, error) {
	return func(args []string) (_ any, err error) {
		switch args[0] {
		case catalog.CacheWorkflow:
			args[1], err = c.wholeID(args[1], &ownPlans)
		case catalog.CacheSkill, catalog.CacheKey:
		default:
			err = usage(errors.New("SCOPE is workflow (KEY: a run or plan), skill (KEY: its id) or key (KEY: as writ skill cache stats prints it)"))
		}
		return catalog.CacheInvalidate{Scope: args[0], Key: args[1]}, err
	}
}
