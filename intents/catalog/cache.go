package catalog

import (
	"time"
)

// cacheRows are carried out by the skills executor, which caches the answers.
var cacheRows = []Row{
	{Type: "cache.invalidate", Title: "Forget answers that are kept", Capability: "cache:write", Signers: askersAndOperators, Executor: "skills", Effect: Idempotent, RandomKey: true},
}

// The scopes of cache.invalidate.
const (
	CacheWorkflow = "workflow" // what the intents of a run or plan cached
	CacheSkill    = "skill"
	CacheKey      = "key"
)

// CacheInvalidate are the arguments of cache.invalidate.
type CacheInvalidate struct {
	Scope string `json:"scope"`
	Key   string `json:"key"`
}

// CacheInvalidateResult is the result of cache.invalidate.
type CacheInvalidateResult struct {
	Removed int `json:"removed"`
}

// CacheStatsResult is what would serve calls of a user.
type CacheStatsResult struct {
	Entries   int            `json:"entries"`
	SizeBytes int64          `json:"size_bytes"`
	Answers   []CachedAnswer `json:"answers"` // the newest 100
}

// CachedAnswer is a cached answer.
type CachedAnswer struct {
	Key       string    `json:"key"` // <skill>:sha256:<hex>
	SizeBytes int64     `json:"size_bytes"`
	Shared    bool      `json:"shared,omitempty"`
	KeptAt    time.Time `json:"kept_at"`
}
