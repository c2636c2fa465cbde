package audit

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// keySet is a version of the key set with where it came into force.
type keySet struct {
	token string
	set   intents.KeySet
	keys  map[string]intents.Key
	at    int64 // position of the record that put it in force
}

// fold is what a bundle's records make, up to a position: which keys, tasks,
// policy and directory are in force. One goroutine uses it.
type fold struct {
	origin  string
	root    ed25519.PublicKey
	keys    *keySet
	policy  string // digests in force
	catalog string
	rules   intents.Rules // by which orders are judged
	dir     *directory
	dirs    []*directory // earlier ones that decisions may still rest on
	roles   []catalog.RoleData

	revision int64            // the highest of a policy that was in force; 0: none had one
	policies map[string]bool  // that were ever in force
	early    map[string]int64 // policies that decided before a record said so: where first

	plans   map[string]*plan // "tenant/plan_id"
	tasks   map[string]*task // kid
	byTask  map[string]*task // "tenant/task_id"
	orders  map[int64]*open  // without outcome
	held    map[string]*open // of these, those that wait for people, by intent_id
	unknown map[string]*open // that ended and nobody knew how, by intent_id
	revoked map[string]time.Time
	taken   map[storage.Key]holder // idempotency keys
	batch   inBatch
	next    int64 // position after the last item
	latest  time.Time
	steps   int64                // records that a clock which stepped back has timed
	whole   bool                 // every record so far is there
	lacking map[int64][]*missing // what no record.erase has named yet, by the position of the order
	blobs   map[int64]bool       // orders whose blobs were erased, by position
}

// holder is the order that took an idempotency key; ended is zero while it is open.
type holder struct {
	position int64
	ended    int64 // Unix seconds
}

// keyLife is how long a key stays taken, at the least, after its order has ended.
const keyLife = 24 * time.Hour

// plan is what a task's rights come from.
type plan struct {
	tenant, user, session, turn string
	revisions                   map[string]*revision // by plan_digest
	current                     string
	tasks                       []*task // that live
}

type revision struct {
	number int
	steps  []catalog.PlanStep
}

// task is an ephemeral key and what it is good for. The immutable part is read
// by the workers too; ended is the fold's.
type task struct {
	name, id, tenant, user string // name is "tenant/task_id"
	public                 ed25519.PublicKey
	planID, session, turn  string
	revision, step         int
	skills                 []string
	deadline               time.Time
	ended                  string
}

// open is an order that may still get an outcome.
type open struct {
	intentID string
	tenant   string
	verdict  intents.Verdict
	released bool
	digest   string // of its record
	policy   string
	task     *task
	typ      string
	key      storage.Key

	held     *order // what waits for people
	deadline time.Time
	said     []said // who said yes
	last     string // the intent_id of the last yes
	refused  bool   // somebody said no
}

func newFold() *fold {
	return &fold{
		policies: map[string]bool{}, early: map[string]int64{}, plans: map[string]*plan{}, tasks: map[string]*task{}, byTask: map[string]*task{},
		orders: map[int64]*open{}, held: map[string]*open{}, unknown: map[string]*open{}, revoked: map[string]time.Time{}, taken: map[storage.Key]holder{}, whole: true, lacking: map[int64][]*missing{}, blobs: map[int64]bool{}, dir: &directory{tenants: map[string]*tenantData{}},
	}
}

// job is one record for the workers: what was in force when it was made.
type job struct {
	*item
	keys    *keySet
	task    *task // of a task key's order
	ended   string
	dir     *directory // that the decision rests on
	policy  string
	revoked time.Time // grants of its user minted before are dead
	about   *open     // of an outcome: its order
	roles   []catalog.RoleData
	rules   intents.Rules
}

// take folds an item and says what the workers must check it against.
func (f *fold) take(it *item) (*job, error) {
	j := &job{item: it}
	apart := f.takeBatch(it)
	if it.entry == nil {
		f.whole = false
		return j, nil
	}
	if it.blind {
		f.whole = false // what it is, and so what follows from it, is not known
	}
	f.noteTime(it)
	if it.position == 0 {
		if err := f.genesis(it); err != nil {
			return j, err
		}
	}
	if it.control != nil {
		rules, err := f.rules.After(it.control.Rules)
		if err != nil {
			return j, err
		}
		f.rules = rules
	}
	if f.keys == nil {
		return j, errors.New("the bundle does not begin with the genesis")
	}
	j.keys = f.keys
	if err := f.timed(it); err != nil {
		return j, err
	}
	switch {
	case apart != nil:
		return j, apart
	case it.control != nil && it.position > 0:
		return j, f.takeControl(it.control)
	case it.order != nil:
		return j, f.takeOrder(it, j)
	case it.outcome != nil:
		return j, f.takeOutcome(it, j)
	case it.released:
		return j, f.takeRelease(it, j)
	case it.entry.Kind == storage.KindTakeover && f.whole && f.orders[it.of] == nil:
		return j, errors.New("takes over an order that is not open")
	}
	return j, nil
}

func (f *fold) takeControl(c *control) error {
	if c.Genesis != nil {
		return errors.New("a second genesis")
	}
	if c.Revision > 0 && c.Revision < f.revision {
		return fmt.Errorf("puts policy revision %d in force after revision %d", c.Revision, f.revision)
	}
	if c.Policy != "" {
		f.revision = max(f.revision, c.Revision)
		f.policy = c.Policy
		f.policies[c.Policy] = true
		delete(f.early, c.Policy)
	}
	if c.Catalog != "" {
		f.catalog = c.Catalog
	}
	return nil
}

// takeOutcome closes an order: of one that was allowed, or held and released or
// turned down, and only once.
func (f *fold) takeOutcome(it *item, j *job) error {
	o := f.orders[it.of]
	if o == nil {
		if f.whole {
			return errors.New("an outcome of no open order: no decision allows this effect, or it has an outcome already")
		}
		f.lacks(it, it.of, "", "")
		return nil
	}
	delete(f.orders, it.of)
	delete(f.held, o.intentID)
	j.about = o
	f.lacks(it, it.of, o.intentID, o.tenant)
	if it.outcome.Status == intents.Failed && it.outcome.Retryable {
		delete(f.taken, o.key)
	} else if h := f.taken[o.key]; h.position == it.of {
		f.taken[o.key] = holder{it.of, it.at.Unix()}
	}
	if it.outcome.Status == intents.StatusIndetermined {
		f.unknown[o.intentID] = o
	}
	if o.verdict == intents.Hold && !o.released {
		if err := f.turnedDown(o, it); err != nil {
			return err
		}
	}
	if o.typ == "write_memory" && it.outcome.Code == intents.ContractViolation && o.task != nil && o.task.ended == "" {
		o.task.ended = "contract violation"
	}
	return nil
}

// generation is the directory that a decision rests on: its own position says
// which records it had seen.
func (f *fold) generation(seen int64) *directory {
	if f.dir.at <= seen {
		return f.dir
	}
	for _, d := range slices.Backward(f.dirs) {
		if d.at <= seen {
			return d
		}
	}
	return f.dir
}

// maxGenerations of the directory are remembered.
const maxGenerations = 64

func (f *fold) putDirectory(d *directory) {
	if d == f.dir {
		return
	}
	f.dirs = append(f.dirs, f.dir)
	if len(f.dirs) > maxGenerations {
		f.dirs = slices.Delete(f.dirs, 0, 1)
	}
	f.dir = d
}

func unmarshal[T any](raw json.RawMessage) (v T, err error) { return v, json.Unmarshal(raw, &v) }
