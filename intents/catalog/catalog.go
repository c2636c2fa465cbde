// Package catalog is the closed list of what can be ordered (DESIGN §8): one
// row per intent type with who may sign it, which capability it needs, what it
// does to the world and who carries it out, and the Go types of its arguments
// and results. Rows are data; nothing here acts. One file per executor.
package catalog

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/gowebpki/jcs"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// Effect is what carrying an order out does to the world; it decides what
// recovery may do with an open one (DESIGN §5).
type Effect string

// The effects. A row whose effect is EffectPin takes that of the skill's approved pin.
const (
	Pure       Effect = "pure"       // none: may be abandoned
	Idempotent Effect = "idempotent" // the same twice is the same: may be dispatched again
	Once       Effect = "once"       // never retried by itself
	EffectPin  Effect = "pin"
)

// ExecutorRouter carries an order out by committing it: its effect is the fold.
const ExecutorRouter = "router"

// Row is one intent type.
type Row struct {
	Type       string         `json:"type"`
	Title      string         `json:"title"`
	Capability string         `json:"capability"` // area:verb
	Signers    []intents.Role `json:"signed_by"`
	Executor   string         `json:"executor"`
	Effect     Effect         `json:"effect"`
	// RandomKey: our sealers use a random idempotency key although the row is not pure.
	RandomKey bool          `json:"random_key,omitempty"`
	MaxTTL    time.Duration `json:"-"` // 0: 300 s
	MaxRun    time.Duration `json:"-"` // the run; 0: DefaultRun
}

// DefaultRun bounds a run whose row says nothing.
const DefaultRun = 30 * time.Second

// Run is the longest time from dispatch to outcome.
func (r Row) Run() time.Duration {
	if r.MaxRun == 0 {
		return DefaultRun
	}
	return r.MaxRun
}

// TTL is the largest ttl_sec that the row accepts.
func (r Row) TTL() time.Duration {
	if r.MaxTTL == 0 {
		return 300 * time.Second
	}
	return r.MaxTTL
}

// MaySign says whether keys of a role may sign the type.
func (r Row) MaySign(role intents.Role) bool { return slices.Contains(r.Signers, role) }

// ArgsSchema and ResultSchema are JSON Schema 2020-12 documents of schemas/intents.
func (r Row) ArgsSchema() (*schemas.Schema, error) { return schemas.IntentArgs(r.Type) }

// ResultSchema of the row.
func (r Row) ResultSchema() (*schemas.Schema, error) { return schemas.IntentResult(r.Type) }

// Rows lists the catalog in documentation order. Do not modify.
func Rows() []Row { return rows() }

// Lookup finds a type.
func Lookup(typ string) (Row, bool) {
	r, ok := byType()[typ]
	return r, ok
}

var rows = sync.OnceValue(func() []Row {
	return slices.Concat(planRows, memoryRows, fileRows, pythonRows, skillRows, sessionRows, adminRows)
})

var byType = sync.OnceValue(func() map[string]Row {
	m := make(map[string]Row)
	for _, r := range rows() {
		m[r.Type] = r
	}
	return m
})

// Digest names the catalog that decided: SHA-256 over the JCS of all rows with their schemas.
var Digest = sync.OnceValue(func() string {
	canonical, err := jcs.Transform(Document())
	if err != nil {
		return ""
	}
	return intents.Digest(canonical)
})

// Document is the catalog as GET /v1/catalog publishes it: every row with its
// limits in seconds and both schemas.
var Document = sync.OnceValue(func() []byte {
	type row struct {
		Row
		TTLSec int             `json:"ttl_sec"`
		RunSec int             `json:"run_sec"`
		Args   json.RawMessage `json:"args_schema"`
		Result json.RawMessage `json:"result_schema"`
	}
	var out []row
	for _, r := range Rows() {
		args, err1 := r.ArgsSchema()
		result, err2 := r.ResultSchema()
		if err1 != nil || err2 != nil {
			continue // TestRowsHaveSchemas fails
		}
		out = append(out, row{r, int(r.TTL().Seconds()), int(r.Run().Seconds()), args.Source(), result.Source()})
	}
	doc, err := json.Marshal(map[string]any{"intents": out})
	if err != nil {
		return nil
	}
	return doc
})
