// Package catalog is the closed list of intent types: one row per
// type with its signers, its capability, its effect
// and its executor, and the Go types of its arguments and results. Rows are
// data; nothing here acts. One file per executor.
package catalog

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gowebpki/jcs"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// Effect is the effect of an intent on the world; it decides what
// recovery may do with an open one.
type Effect string

// The effects. A row whose effect is EffectPin takes that of the skill's approved pin.
const (
	Pure       Effect = "pure"       // none: may be abandoned
	Idempotent Effect = "idempotent" // the same twice is the same: may be dispatched again
	Once       Effect = "once"       // never retried by itself
	EffectPin  Effect = "pin"
)

// ExecutorRouter carries an intent out by committing it: its effect is a transition of the state.
const ExecutorRouter = "router"

// Row is one intent type.
type Row struct {
	Type       string         `json:"type"`
	Title      string         `json:"title"`
	Capability string         `json:"capability"` // area:verb
	Signers    []intents.Role `json:"signed_by"`
	Executor   string         `json:"executor"`
	Effect     Effect         `json:"effect"`
	// RandomKey: our submitters use a random idempotency key although the row is not pure.
	RandomKey bool `json:"random_key,omitempty"`
	// DataAt is where the executor finds the data that the argument "from" names,
	// such as /data; empty: the type has no argument "from".
	DataAt   string        `json:"-"`
	MaxTTL   time.Duration `json:"-"` // 0: 300 s
	MaxRun   time.Duration `json:"-"` // the run; 0: DefaultRun
	MaxQueue time.Duration `json:"-"` // its wait for a turn at the executor, before the run; 0: none

	args, result func() (*schemas.Schema, error) // nil: of schemas/intents
}

// DefaultRun bounds a run whose row has no limit.
const DefaultRun = 30 * time.Second

// Run is the longest time from dispatch to outcome: a wait for a turn at the
// executor, where there is one, and the run.
func (r Row) Run() time.Duration {
	if r.MaxRun == 0 {
		return r.MaxQueue + DefaultRun
	}
	return r.MaxQueue + r.MaxRun
}

// maxStart bounds the wait of a dispatched intent for an executor that takes it.
const maxStart = 2 * time.Minute

// Start is how long a dispatched intent waits at most for an executor that takes it.
func (r Row) Start() time.Duration { return min(r.Run(), maxStart) }

// Long reports whether the run may outlast the wait of whoever has it carried out.
func (r Row) Long() bool { return r.Run() > maxStart }

// TTL is the largest ttl_sec that the row accepts.
func (r Row) TTL() time.Duration {
	if r.MaxTTL == 0 {
		return 300 * time.Second
	}
	return r.MaxTTL
}

// Key is the idempotency key that our own submitters give an intent of the row: its
// fingerprint, so that the same step is the same intent whoever signs it again, or a
// random one, as for reads. The tasks of a step load a manifest by one intent, so that
// it is approved once.
func (r Row) Key(args json.RawMessage, user string, c intents.Context) string {
	one := r.Type == "skill.load" && c.TaskID != ""
	if (r.Effect == Pure || r.RandomKey) && !one {
		return RandomKey()
	}
	return intents.Fingerprint(intents.Spec{Type: r.Type, Args: args}, user, c)
}

// RandomKey is an idempotency key that no other intent has.
func RandomKey() string { return "rnd_" + rand.Text() }

// Stores reports whether the executor may store what it gets beyond the intent's plan, and so keeps
// its sources with it. Blobs are the router's to label.
func (r Row) Stores() bool {
	return r.Vendor() || slices.Contains([]string{"memory", "sessions", "knowledge"}, r.Executor)
}

// Vendor reports whether the type is a vendor's (x.<vendor>.<name>).
func (r Row) Vendor() bool { return strings.HasPrefix(r.Type, "x.") }

// MaySign reports whether keys of a role may sign the type.
func (r Row) MaySign(role intents.Role) bool { return slices.Contains(r.Signers, role) }

// ArgsSchema and ResultSchema are JSON Schema 2020-12 documents: of schemas/intents,
// or the vendor's.
func (r Row) ArgsSchema() (*schemas.Schema, error) {
	if r.args != nil {
		return r.args()
	}
	return schemas.IntentArgs(r.Type)
}

// ResultSchema of the row.
func (r Row) ResultSchema() (*schemas.Schema, error) {
	if r.result != nil {
		return r.result()
	}
	return schemas.IntentResult(r.Type)
}

// Catalog is a closed list of intent types: the built-in rows, and vendors' beside
// them. It never changes; one process has one, and each decision has
// its digest. A nil *Catalog is the built-in one.
type Catalog struct {
	rows   []Row
	byType map[string]Row

	document, canonical func() []byte
	digest              func() string
}

var builtin = newCatalog(slices.Concat(planRows, workflowRows, askRows, memoryRows, fileRows, pythonRows, skillRows, connectionRows, sessionRows, artifactRows, knowledgeRows, cacheRows, approvalRows, registryRows, adminRows, auditRows, scheduleRows, logRows))

// Builtin is the catalog without vendors' rows.
func Builtin() *Catalog { return builtin }

// Executors are the types of our own executors, by executor.
func Executors() map[string][]string {
	out := make(map[string][]string)
	for _, r := range builtin.rows {
		if r.Executor != ExecutorRouter {
			out[r.Executor] = append(out[r.Executor], r.Type)
		}
	}
	return out
}

// Open is the catalog with the vendors' rows of a directory (ReadVendors); empty:
// the built-in one.
func Open(dir string) (*Catalog, error) {
	if dir == "" {
		return builtin, nil
	}
	vendors, err := ReadVendors(dir)
	if err != nil {
		return nil, err
	}
	return Extend(vendors)
}

// Extend is the catalog with vendors' rows beside the built-in ones.
func Extend(vendors []Row) (*Catalog, error) {
	for _, r := range vendors {
		if !r.Vendor() {
			return nil, fmt.Errorf("catalog: %s is no vendor's type", r.Type)
		}
	}
	c := newCatalog(slices.Concat(builtin.rows, vendors))
	if len(c.byType) != len(c.rows) {
		return nil, errors.New("catalog: a type stands twice")
	}
	return c, nil
}

func newCatalog(rows []Row) *Catalog {
	c := &Catalog{rows: rows, byType: make(map[string]Row, len(rows))}
	for _, r := range rows {
		c.byType[r.Type] = r
	}
	c.document = sync.OnceValue(func() []byte { return publish(rows) })
	c.canonical = sync.OnceValue(func() []byte {
		canonical, err := jcs.Transform(c.document())
		if err != nil {
			return nil
		}
		return canonical
	})
	c.digest = sync.OnceValue(func() string {
		canonical := c.canonical()
		if canonical == nil {
			return ""
		}
		return intents.Digest(canonical)
	})
	return c
}

func (c *Catalog) orBuiltin() *Catalog { return cmp.Or(c, builtin) }

// Rows lists the catalog in documentation order. Do not modify.
func (c *Catalog) Rows() []Row { return c.orBuiltin().rows }

// Lookup finds a type.
func (c *Catalog) Lookup(typ string) (Row, bool) {
	r, ok := c.orBuiltin().byType[typ]
	return r, ok
}

// Digest names the catalog that decided: SHA-256 over the JCS of all rows with their schemas.
func (c *Catalog) Digest() string { return c.orBuiltin().digest() }

// Document is the catalog as GET /v1/catalog publishes it: every row with its
// limits in seconds and both schemas. Do not modify.
func (c *Catalog) Document() []byte { return c.orBuiltin().document() }

// Canonical is the JCS of Document, which Digest names; nil if it has none. It takes a while the
// first time. Do not modify.
func (c *Catalog) Canonical() []byte { return c.orBuiltin().canonical() }

// publishedRow is a row as it is written: with its limits in seconds and its schemas.
type publishedRow struct {
	Row
	TTLSec int             `json:"ttl_sec"`
	RunSec int             `json:"run_sec"`
	Args   json.RawMessage `json:"args_schema"`
	Result json.RawMessage `json:"result_schema"`
}

func (d publishedRow) row() Row {
	r := d.Row
	r.MaxTTL, r.MaxRun = time.Duration(d.TTLSec)*time.Second, time.Duration(d.RunSec)*time.Second
	r.args = sync.OnceValues(func() (*schemas.Schema, error) { return schemas.Compile(d.Args) })
	r.result = sync.OnceValues(func() (*schemas.Schema, error) { return schemas.Compile(d.Result) })
	return r
}

// Read reads the Document of a catalog, which another build may have published.
func Read(doc []byte) (*Catalog, error) {
	var d struct {
		Intents []publishedRow `json:"intents"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	rows := make([]Row, len(d.Intents))
	for i, x := range d.Intents {
		rows[i] = x.row()
	}
	return newCatalog(rows), nil
}

// whole is a schema with all that it refers to: a vendor's, or the embedded one of that name.
func whole(vendor func() (*schemas.Schema, error), name string) (json.RawMessage, error) {
	if vendor != nil {
		s, err := vendor()
		if err != nil {
			return nil, err
		}
		return schemas.Bundle(s.Source())
	}
	source, err := schemas.Source(schemas.Base + "intents/" + name + ".json")
	if err != nil {
		return nil, err
	}
	return schemas.Bundle(source)
}

func publish(rows []Row) []byte {
	var out []publishedRow
	for _, r := range rows {
		args, err1 := whole(r.args, r.Type)
		result, err2 := whole(r.result, r.Type+".result")
		if err1 != nil || err2 != nil {
			continue // TestRowsHaveSchemas fails
		}
		out = append(out, publishedRow{r, int(r.TTL().Seconds()), int(r.Run().Seconds()), args, result})
	}
	doc, err := json.Marshal(map[string]any{"intents": out})
	if err != nil {
		return nil
	}
	return doc
}
