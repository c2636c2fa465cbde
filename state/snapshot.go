package state

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// image is the state as JSON without its plans, which follow it one by one: the same state gives
// the same bytes, since encoding/json sorts the names of maps. It omits what follows from other
// members.
type image struct {
	Next  int64     `json:"next"`
	Rests []int64   `json:"rests"`
	Last  time.Time `json:"last"`
	// Beside is not part of the digest.
	Beside *besideImage `json:"beside,omitempty"`

	Origin  string             `json:"origin"`
	Root    []byte             `json:"root"`
	Roles   []catalog.RoleData `json:"roles"`
	KeySet  string             `json:"key_set"`
	Policy  policy             `json:"policy"`
	Catalog string             `json:"catalog"`

	DirectoryAt int64                  `json:"directory_at"`
	Tenants     map[string]*tenant     `json:"tenants"`
	APIKeys     map[string]apiKeyRow   `json:"api_keys"`
	Keyed       bool                   `json:"keyed"`
	Retained    map[string][]retention `json:"retained"`
	Revoked     map[string]time.Time   `json:"revoked"`

	Agents    map[string]*revision        `json:"agents,omitempty"`
	Schedules map[string]catalog.Schedule `json:"schedules,omitempty"`
	Used      dayUsage                    `json:"used,omitzero"`
	Artifacts map[string]labelled         `json:"artifacts,omitempty"`
	Sessions  map[string]labelled         `json:"sessions,omitempty"`

	Plans    int                    `json:"plans"` // number that follow
	Intents  map[int64]*openIntent  `json:"intents"`
	Unknown  map[string]*openIntent `json:"unknown"`
	Holds    map[int64]*Hold        `json:"holds"`
	Edits    map[string]*edit       `json:"edits,omitempty"`
	Standing map[string]*standing   `json:"standing,omitempty"`
	Released map[int64]int64        `json:"released"`
	Resolved map[int64]string       `json:"settled"`
	Erased   int                    `json:"erased"` // number of record.erase
}

// besideImage is what two states that saw the same records may differ in: a record's writes are
// passed beside it, a process forgets erasures that it has carried out, and a record may have lost
// its parts since another process read it. A process that
// starts from a snapshot checks all of these, as after reading all records.
type besideImage struct {
	LastWrites  map[storage.Subject]int64 `json:"touched"`
	Window      storage.Window            `json:"window"`
	Erasing     []Erasure                 `json:"erasing"`
	Unexplained map[int64]lostParts       `json:"unexplained,omitempty"`
	Transient   []endedTransient          `json:"transient,omitempty"`
}

// Snapshot writes the state so that Open reads it, and returns the position after the last
// record that it has seen. The error is that of the writer, or of a state that could not apply a
// record. The state must not change while it is written.
func (s *State) Snapshot(w io.Writer) (next int64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.next, s.encode(w, &besideImage{s.lastWrites, s.window, s.erasures.pending, s.erasures.unexplained, s.transient})
}

// Digest of the state, "sha256:" and hex, and the position after the last record that it has
// seen. Two states that saw the same records have the same digest. The error is that of a state
// that could not apply a record (Err).
func (s *State) Digest() (next int64, digest string, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h := sha256.New()
	err = s.encode(h, nil)
	return s.next, "sha256:" + hex.EncodeToString(h.Sum(nil)), err
}

// encode writes the state as lines of JSON: all but its plans, then each plan by name.
// The lock is held.
func (s *State) encode(w io.Writer, beside *besideImage) error {
	if len(s.faults) > 0 {
		return s.faults[0]
	}
	buffered := bufio.NewWriter(w)
	enc := json.NewEncoder(buffered)
	enc.SetEscapeHTML(false) // arguments stay as they were signed
	err := enc.Encode(image{
		Next: s.next, Rests: s.rests, Last: s.last, Beside: beside,
		Origin: s.origin, Root: s.root, Roles: s.roles, KeySet: s.keySetToken, Policy: s.policy, Catalog: s.catalog,
		DirectoryAt: s.dir.at, Tenants: s.dir.tenants, APIKeys: s.apiKeys, Keyed: s.keyed, Retained: s.retained, Revoked: s.revoked,
		Agents: s.agents, Schedules: s.schedules, Used: s.dayUsage, Artifacts: s.artifacts, Sessions: s.sessions, Plans: len(s.plans), Intents: s.intents, Unknown: s.unknown, Holds: s.holds.waiting, Edits: s.holds.edits, Standing: s.holds.standing, Released: s.holds.released,
		Resolved: s.resolved, Erased: s.erasures.number,
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.plans)) {
		if err := enc.Encode(s.plans[name]); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// Open restores the state of a snapshot, which continues with the records after it. The bytes
// must be ones that Snapshot wrote: verify the signature of whoever stores them first.
func Open(r io.Reader) (*State, error) {
	lines := json.NewDecoder(r)
	var m image
	if err := lines.Decode(&m); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	s := New()
	s.next, s.rests, s.last, s.origin, s.root, s.roles = m.Next, m.Rests, m.Last, m.Origin, m.Root, m.Roles
	var err error
	if m.KeySet != "" { // otherwise there is no genesis yet
		if s.keySet, s.keys, err = intents.OpenKeySet(m.KeySet, s.root); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		if s.origin != Origin(s.root) {
			return nil, errors.New("state: the root key is not the log's")
		}
	}
	s.keySetToken, s.policy, s.catalog = m.KeySet, m.Policy, m.Catalog
	s.dir.at, s.dir.tenants, s.apiKeys, s.retained, s.revoked = m.DirectoryAt, m.Tenants, m.APIKeys, m.Retained, m.Revoked
	s.keyed = m.Keyed
	for id := range m.Tenants {
		s.dir.own[id] = true
	}
	s.intents, s.unknown, s.holds.released, s.resolved = m.Intents, m.Unknown, m.Released, m.Resolved
	s.erasures.number, s.dayUsage = m.Erased, m.Used
	if m.Beside != nil {
		maps.Copy(s.lastWrites, m.Beside.LastWrites)
		s.window, s.erasures.pending, s.transient = m.Beside.Window, m.Beside.Erasing, m.Beside.Transient
		maps.Copy(s.erasures.unexplained, m.Beside.Unexplained)
	}
	for tenant, r := range m.Agents {
		if r == nil {
			return nil, errNoMember
		}
		s.agents[tenant] = r
	}
	maps.Copy(s.schedules, m.Schedules)
	maps.Copy(s.artifacts, m.Artifacts)
	maps.Copy(s.sessions, m.Sessions)
	for range m.Plans {
		p := new(plan)
		if err := lines.Decode(p); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		if p.View.Status.Ended() && p.View.CompletedAt == nil {
			return nil, errors.New("state: a closed plan without the time of its close")
		}
		if slices.Contains(p.Tasks, nil) || slices.Contains(p.Calls, nil) || slices.Contains(p.IntentHistory, nil) || p.Runs.lacks() {
			return nil, errNoMember
		}
		s.putPlan(p)
	}
	if _, err := lines.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("state: something follows the last plan")
	}
	slices.SortFunc(s.leaving.closed, func(a, b closedPlan) int { return a.at.Compare(b.at) })
	for _, x := range slices.Concat(slices.Collect(maps.Values(s.intents)), slices.Collect(maps.Values(s.unknown))) {
		if x == nil {
			return nil, errNoMember
		}
		p := s.plans[x.Plan]
		switch {
		case p != nil && notInHistory <= x.HistoryIndex && x.HistoryIndex < len(p.IntentHistory):
			p.pending++
		case x.Plan != "" || x.HistoryIndex != notInHistory:
			return nil, errors.New("state: an intent of a plan that is not there")
		}
	}
	for _, h := range m.Holds {
		if h == nil {
			return nil, errNoMember
		}
		s.holds.add(h)
	}
	for id, e := range m.Edits {
		if e == nil || len(e.Editors) == 0 {
			return nil, errNoMember
		}
		s.holds.edits[id] = e
	}
	for id, x := range m.Standing {
		if x == nil {
			return nil, errNoMember
		}
		s.holds.standing[id] = x
	}
	return s, nil
}

// errNoMember reports null where a snapshot has an object.
var errNoMember = errors.New("state: null in the place of an object")

// putPlan adds a plan of a snapshot.
func (s *State) putPlan(p *plan) {
	for _, t := range p.Tasks {
		t.plan = p
		s.addTask(t)
	}
	s.plans[p.View.TenantID+"/"+p.View.PlanID] = p
	s.putTurn(p)
	s.putRouted(p)
	if !p.View.Status.Ended() {
		s.putOpen(p)
	} else {
		s.leaving.closed = append(s.leaving.closed, closedPlan{*p.View.CompletedAt, p})
	}
}
