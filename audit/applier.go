package audit

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// applier follows a bundle's records in order. They build a state.State, whose
// transitions are judged; the other fields are for the auditor only. One
// goroutine uses it.
type applier struct {
	origin string
	root   ed25519.PublicKey // that the auditor has pinned; may be nil
	state  *state.State
	keys   *keySet            // in force
	sets   []*keySet          // all versions so far
	dirs   []*state.Directory // that decisions may still rest on; the last one is in force

	policies map[string]bool // that were ever in force

	intents     map[int64]*open             // without outcome
	unknown     map[string]storage.Key      // of intents whose outcome is unknown, by intent_id
	idempotency map[storage.Key]holder      // idempotency keys
	named       map[storage.Key]storage.Key // those of intents that are shown, by what these name
	artifacts   bool                        // the result of an artifact.put is not shown: which it made is not known
	erased      map[string]bool             // tasks ("tenant/task_id") that wrote a memory whose key is not shown
	batch       inBatch
	next        int64 // position after the last item
	latest      time.Time
	steps       int64                // records that a clock which stepped back has timed
	whole       bool                 // every record so far is there
	lacking     map[int64][]*missing // parts that no erasure has named yet, by the position of the intent
	// content reads a blob of tenant system that the auditor has; nil: none.
	content func(digest string) ([]byte, error)
	inputs  *contents // what policies saw of the inputs of intents; nil: no decision is replayed
	sweepAt int       // how many keys and erased tasks there are when they are looked through again
}

// keySet is a version of the key set with where it came into force.
type keySet struct {
	keys    map[string]intents.Key
	version int64
	at      int64 // position of the record that put it in force
}

// holder is the intent that took an idempotency key; ended is zero while it is open.
type holder struct {
	position int64
	ended    int64       // Unix seconds
	named    storage.Key // zero: it is not shown
}

// free reports whether its key may be taken again.
func (h holder) free(now time.Time) bool {
	return h.ended != 0 && !now.Before(time.Unix(h.ended, 0).Add(keyLife))
}

// keyLife is how long a key stays taken at least after its intent has ended.
const keyLife = 24 * time.Hour

// task is the key of a task, with the task as it was when the key signed.
type task struct {
	key intents.Key
	state.Task
}

// open is an intent that may still get an outcome.
type open struct {
	intentID, tenant, user string
	task                   *task
	ofNode                 bool   // of a run: it is what the node of its task does
	memory                 string // of a write_memory: its task, "tenant/task_id"
	key                    storage.Key

	typ        string
	dispatched bool             // or released to be
	sources    []intents.Source // that its plan has read once it ended: those of its decision, and of the skill that it calls
	held       *intent          // what waits for people
	answer     []byte           // of a question: its result, canonical, as its release gives it
}

func newApplier() *applier {
	s := state.New()
	return &applier{
		state: s, dirs: []*state.Directory{s.Directory()}, policies: map[string]bool{},
		intents: map[int64]*open{}, unknown: map[string]storage.Key{}, idempotency: map[storage.Key]holder{}, named: map[storage.Key]storage.Key{},
		erased: map[string]bool{}, whole: true, lacking: map[int64][]*missing{}, sweepAt: minSweep,
	}
}

// job is one record for the workers: what was in force when it was made.
type job struct {
	*item
	keys       *keySet
	task       *task               // of an intent signed with a task key
	dir        *state.Directory    // that the decision rests on
	revoked    time.Time           // grants of its user issued before are dead
	about      *open               // of an outcome: its intent
	seen       []string            // the rules that held the call whose standing approval it names
	requesters *intents.Requesters // of an intent that waits or is refused; nil: the intent determines them

	// Of a router intent: the state's verdict. It is reported only if nothing
	// else is wrong with the record.
	unfit    error        // why it could not be accepted
	unjudged bool         // the bundle shows too little to say
	refusal  intents.Code // of a refused one, the replayed refusal
}

// take applies an item and returns what the workers must check it against.
func (f *applier) take(it *item) (*job, error) {
	j := &job{item: it}
	apart := f.takeBatch(it)
	if it.bare {
		f.whole = false
		return j, nil
	}
	if it.blind {
		f.whole = false // its content and so its effects are unknown
	}
	f.noteTime(it)
	defer f.pass(it)
	if it.Position == 0 {
		if err := f.genesis(it); err != nil {
			return j, err
		}
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
	case it.control != nil && it.Position > 0:
		return j, f.takeControl(it)
	case it.intent != nil:
		return j, f.takeIntent(it, j)
	case it.outcome != nil:
		return j, f.takeOutcome(it, j)
	case it.release != nil:
		return j, f.takeRelease(it, j)
	case it.Kind == storage.KindTakeover && f.whole && f.intents[it.target] == nil:
		return j, errors.New("takes over an intent that is not open")
	}
	return j, nil
}

// believe is take for records that are not to be verified. The error is a *Bad.
func (f *applier) believe(it *item) (*job, error) {
	j, err := &job{item: it}, it.err
	if err == nil {
		j, err = f.take(it)
	}
	if err != nil {
		return nil, &Bad{it.Position, j.id(), err.Error()}
	}
	return j, nil
}

// pass lets time pass in the state with every record, also where it has nothing of it,
// and forgets what nothing can ask for any more: so that what an auditor holds does not
// grow with the log.
func (f *applier) pass(it *item) {
	_ = f.state.Take(state.Content{Position: it.Position, At: it.At}) // nothing to apply
	if len(f.idempotency)+len(f.erased) < f.sweepAt {
		return
	}
	maps.DeleteFunc(f.idempotency, func(_ storage.Key, h holder) bool { return h.free(f.latest) })
	maps.DeleteFunc(f.named, func(_, key storage.Key) bool { return f.idempotency[key] == (holder{}) })
	maps.DeleteFunc(f.erased, func(task string, _ bool) bool {
		_, there := f.state.View().Task(task)
		return !there
	})
	f.sweepAt = max(minSweep, 2*(len(f.idempotency)+len(f.erased)))
}

// freed gives a key back at once.
func (f *applier) freed(key storage.Key) {
	if h, there := f.idempotency[key]; there {
		h.ended = 1 // long ago
		f.idempotency[key] = h
	}
}

// minSweep keys and tasks are never looked through.
const minSweep = 1024

// add applies a record to the state.
func (f *applier) add(c state.Content) error {
	err := f.state.Take(c)
	if version := f.state.KeySetVersion(); version > 0 && (f.keys == nil || f.keys.version != version) {
		f.keys = &keySet{f.state.Keys(), version, c.Position}
		f.sets = append(f.sets, f.keys)
	}
	if d := f.state.Directory(); d != f.dirs[len(f.dirs)-1] {
		f.dirs = append(f.dirs, d)
		if len(f.dirs) > maxGenerations {
			f.dirs = slices.Delete(f.dirs, 0, 1)
		}
	}
	return err
}

// maxGenerations of the directory are remembered.
const maxGenerations = 64

// generation is the directory that a decision was made on: its own position says
// which records it includes.
func (f *applier) generation(seen int64) *state.Directory {
	for _, d := range slices.Backward(f.dirs) {
		if d.At() <= seen {
			return d
		}
	}
	return f.dirs[len(f.dirs)-1]
}

// genesis pins everything that follows to the root key.
func (f *applier) genesis(it *item) error {
	g := it.genesis
	if g == nil {
		return errors.New("record 0 is no genesis")
	}
	root, err := g.RootJWK.ToKey()
	if err != nil {
		return err
	}
	if g.Origin != f.origin || f.root != nil && !f.root.Equal(root.Public) {
		return errors.New("the genesis is not signed by the pinned root key")
	}
	set, _, err := intents.OpenKeySet(g.KeySet, root.Public)
	switch {
	case err != nil:
		return fmt.Errorf("key set of the genesis: %w", err)
	case set.Version != 1 || set.Prev != "":
		return errors.New("the genesis does not hold key set 1")
	}
	f.policies[g.Policy] = true
	return f.add(state.Content{At: it.At, Control: it.control})
}

func (f *applier) takeControl(it *item) error {
	c := it.control
	if c.Genesis != nil {
		return errors.New("a second genesis")
	}
	if _, revision := f.state.PolicyPushed(); c.Revision > 0 && c.Revision < revision {
		return fmt.Errorf("puts policy revision %d in force after revision %d", c.Revision, revision)
	}
	if c.Policy != "" {
		f.inForce(c.Policy)
	}
	return f.add(state.Content{Position: it.Position, At: it.At, Control: c})
}

// inForce notes that a record puts a policy in force.
func (f *applier) inForce(policy string) {
	f.policies[policy] = true
}

// takeOutcome closes an intent: one that was allowed, or held and released or
// turned down, and each only once.
func (f *applier) takeOutcome(it *item, j *job) error {
	o := f.intents[it.target]
	if o == nil {
		if f.whole {
			return errors.New("an outcome of no open intent: no decision allows this effect, or it has an outcome already")
		}
		f.lacks(it, it.target, "", "", "")
		return nil
	}
	delete(f.intents, it.target)
	j.about = o
	f.lacks(it, it.target, o.intentID, o.tenant, o.user)
	if it.outcome.Status == intents.Failed && it.outcome.Retryable {
		f.freed(o.key)
	} else if h := f.idempotency[o.key]; h.position == it.target {
		h.ended = it.At.Unix()
		f.idempotency[o.key] = h
	}
	if it.outcome.Status == intents.StatusIndetermined {
		f.unknown[o.intentID] = o.key
	}
	if o.memory != "" && it.missing != nil {
		f.erased[o.memory] = true
	}
	f.inputs.noteResult(o, it)
	if h, waits := f.state.View().Hold(o.tenant, o.intentID); waits && h.Recorded == it.target {
		if err := f.turnedDown(h, it); err != nil {
			return err
		}
	}
	if err := f.answered(o, it); err != nil {
		return err
	}
	if err := f.outputs(o, it); err != nil {
		return err
	}
	if err := f.add(state.Content{Position: it.Position, At: it.At, Outcome: it.outcome, Target: it.target}); err != nil {
		return err
	}
	return f.addsSources(o, it)
}

// taskOf finds the task that a key is of.
func taskOf(view *state.View, kid string) *task {
	key, err := view.Key(kid)
	if err != nil || key.Role != intents.RoleTask {
		return nil
	}
	t, _ := view.Task(key.Task)
	return &task{key, t}
}

// routers reports whether the router carries an intent out itself.
func routers(d intents.Decision) bool { return d.Executor == catalog.ExecutorRouter }

func unmarshal[T any](raw json.RawMessage) (v T, err error) { return v, json.Unmarshal(raw, &v) }
