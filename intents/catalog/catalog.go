// Package catalog is the closed list of what can be ordered: one row per intent
// type with who may sign it, which capability it needs, what it does to the world
// and who carries it out, and the Go types of its arguments and results. Rows are
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
	RandomKey bool `json:"random_key,omitempty"`
	// DataAt is where the executor finds the data that the argument "from" names,
	// such as /data; empty: the type has no argument "from".
	DataAt   string        `json:"-"`
	MaxTTL   time.Duration `json:"-"` // 0: 300 s
	MaxRun   time.Duration `json:"-"` // the run; 0: DefaultRun
	MaxQueue time.Duration `json:"-"` // its wait for a turn at the executor, before the run; 0: none

	args, result func() (*schemas.Schema, error) // nil: of schemas/intents
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

// Key is the idempotency key that our own sealers give an order of the row: its
// fingerprint, so that the same step is the same order whoever seals it again, or a
// random one, as for reads. The tasks of a step load a manifest by one order, so that
// people who have to approve it are asked once.
func (r Row) Key(args json.RawMessage, user string, c intents.Context) string {
	one := r.Type == "skill.load" && c.TaskID != ""
	if (r.Effect == Pure || r.RandomKey) && !one {
		return RandomKey()
	}
	return intents.Fingerprint(intents.Intent{Type: r.Type, Args: args}, user, c)
}

// RandomKey is an idempotency key that no other order has.
func RandomKey() string { return "rnd_" + rand.Text() }

// Vendor says whether the type is somebody else's (x.<vendor>.<name>).
func (r Row) Vendor() bool { return strings.HasPrefix(r.Type, "x.") }

// MaySign says whether keys of a role may sign the type.
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
// them. It never changes; one process has one, and its digest stands in each
// decision. A nil *Catalog is the built-in one.
type Catalog struct {
	rows     []Row
	byType   map[string]Row
	document func() []byte
	digest   func() string
}

var builtin = newCatalog(slices.Concat(planRows, workflowRows, askRows, memoryRows, fileRows, pythonRows, skillRows, sessionRows, artifactRows, knowledgeRows, cacheRows, approvalRows, registryRows, adminRows, queryRows, scheduleRows, logRows))

// Builtin is the catalog without vendors' rows.
func Builtin() *Catalog { return builtin }

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
	return Extended(vendors)
}

// Extended is the catalog with vendors' rows beside the built-in ones.
func Extended(vendors []Row) (*Catalog, error) {
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
	c.digest = sync.OnceValue(func() string {
		canonical, err := jcs.Transform(c.document())
		if err != nil {
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

// published is a row as it is written: with its limits in seconds and its schemas.
type published struct {
	Row
	TTLSec int             `json:"ttl_sec"`
	RunSec int             `json:"run_sec"`
	Args   json.RawMessage `json:"args_schema"`
	Result json.RawMessage `json:"result_schema"`
}

func (d published) row() Row {
	r := d.Row
	r.MaxTTL, r.MaxRun = time.Duration(d.TTLSec)*time.Second, time.Duration(d.RunSec)*time.Second
	r.args = sync.OnceValues(func() (*schemas.Schema, error) { return compile(d.Args) })
	r.result = sync.OnceValues(func() (*schemas.Schema, error) { return compile(d.Result) })
	return r
}

// compile compiles a published schema. Earlier builds published schemas without
// the documents that they refer to, which are those of this build: definitions that such
// a schema refers to never change.
func compile(schema json.RawMessage) (*schemas.Schema, error) {
	bundled, err := schemas.Bundle(schema)
	if err != nil {
		return nil, err
	}
	return schemas.Compile(bundled)
}

// Read reads the Document of a catalog, which another build may have published.
func Read(doc []byte) (*Catalog, error) {
	var d struct {
		Intents []published `json:"intents"`
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

// whole is a schema with all that it refers to.
func whole(schema func() (*schemas.Schema, error)) (json.RawMessage, error) {
	s, err := schema()
	if err != nil {
		return nil, err
	}
	return schemas.Bundle(s.Source())
}

func publish(rows []Row) []byte {
	var out []published
	for _, r := range rows {
		args, err1 := whole(r.ArgsSchema)
		result, err2 := whole(r.ResultSchema)
		if err1 != nil || err2 != nil {
			continue // TestRowsHaveSchemas fails
		}
		out = append(out, published{r, int(r.TTL().Seconds()), int(r.Run().Seconds()), args, result})
	}
	doc, err := json.Marshal(map[string]any{"intents": out})
	if err != nil {
		return nil
	}
	return doc
}
