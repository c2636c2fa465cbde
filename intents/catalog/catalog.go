// Package catalog is the closed list of what can be ordered: one row per intent
// type with who may sign it, which capability it needs, what it does to the world
// and who carries it out, and the Go types of its arguments and results. Rows are
// data; nothing here acts. One file per executor.
package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gowebpki/jcs"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// Effect is what carrying an order out does to the world; it decides what
// recovery may do with an open one.
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
	MaxQueue  time.Duration `json:"-"` // its wait for a turn at the executor, before the run; 0: none

	args, result *schemas.Schema // a vendor's own
}

// DefaultRun bounds a run whose row says nothing.
const DefaultRun = 30 * time.Second

// Run is the longest time from dispatch to outcome: a wait for a turn at the
// executor, where there is one, and the run.
func (r Row) Run() time.Duration {
	if r.MaxRun == 0 {
		return r.MaxQueue + DefaultRun
	}
	return r.MaxQueue + r.MaxRun
}

// TTL is the largest ttl_sec that the row accepts.
func (r Row) TTL() time.Duration {
	if r.MaxTTL == 0 {
		return 300 * time.Second
	}
	return r.MaxTTL
}

// Vendor says whether the type is somebody else's (x.<vendor>.<name>).
func (r Row) Vendor() bool { return strings.HasPrefix(r.Type, "x.") }

// MaySign says whether keys of a role may sign the type.
func (r Row) MaySign(role intents.Role) bool { return slices.Contains(r.Signers, role) }

// ArgsSchema and ResultSchema are JSON Schema 2020-12 documents: of schemas/intents,
// or the vendor's.
func (r Row) ArgsSchema() (*schemas.Schema, error) {
	if r.args != nil {
		return r.args, nil
	}
	return schemas.IntentArgs(r.Type)
}

// ResultSchema of the row.
func (r Row) ResultSchema() (*schemas.Schema, error) {
	if r.result != nil {
		return r.result, nil
	}
	return schemas.IntentResult(r.Type)
}

// edition is the catalog of this process: the built-in rows, and vendors'.
type edition struct {
	rows     []Row
	byType   map[string]Row
	document func() []byte
	digest   func() string
}

func newEdition(vendors []Row) *edition {
	e := &edition{rows: slices.Concat(builtIn, vendors), byType: make(map[string]Row)}
	for _, r := range e.rows {
		e.byType[r.Type] = r
	}
	e.document = sync.OnceValue(func() []byte { return publish(e.rows) })
	e.digest = sync.OnceValue(func() string {
		canonical, err := jcs.Transform(e.document())
		if err != nil {
			return ""
		}
		return intents.Digest(canonical)
	})
	return e
}

var builtIn = slices.Concat(planRows, memoryRows, fileRows, pythonRows, skillRows, sessionRows, artifactRows, approvalRows, adminRows)

var current = func() *atomic.Pointer[edition] {
	var p atomic.Pointer[edition]
	p.Store(newEdition(nil))
	return &p
}()

// Extend puts vendors' rows (ReadVendors) beside the built-in ones, in place of
// those of an earlier call. It is for the start of a process, before anything is
// decided: a process has one catalog, whose digest stands in each decision.
func Extend(vendors []Row) error {
	for _, r := range vendors {
		if !r.Vendor() {
			return fmt.Errorf("catalog: %s is no vendor's type", r.Type)
		}
	}
	e := newEdition(vendors)
	if len(e.byType) != len(e.rows) {
		return errors.New("catalog: a type stands twice")
	}
	current.Store(e)
	return nil
}

// Rows lists the catalog in documentation order. Do not modify.
func Rows() []Row { return current.Load().rows }

// Lookup finds a type.
func Lookup(typ string) (Row, bool) {
	r, ok := current.Load().byType[typ]
	return r, ok
}

// Digest names the catalog that decided: SHA-256 over the JCS of all rows with their schemas.
func Digest() string { return current.Load().digest() }

// Document is the catalog as GET /v1/catalog publishes it: every row with its
// limits in seconds and both schemas. Do not modify.
func Document() []byte { return current.Load().document() }

func publish(rows []Row) []byte {
	type row struct {
		Row
		TTLSec int             `json:"ttl_sec"`
		RunSec int             `json:"run_sec"`
		Args   json.RawMessage `json:"args_schema"`
		Result json.RawMessage `json:"result_schema"`
	}
	var out []row
	for _, r := range rows {
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
}
