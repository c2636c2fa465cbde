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

// image is the state as JSON without its plans, which follow it one by one: the same
// state gives the same bytes, since encoding/json sorts the names of maps. What follows
// from other members is not in it.
type image struct {
	Next  int64     `json:"next"`
	Rests []int64   `json:"rests"`
	Last  time.Time `json:"last"`
	// Beside is not in a digest.
	Beside *besideImage `json:"beside,omitempty"`

	Origin  string             `json:"origin"`
	Root    []byte             `json:"root"`
	Roles   []catalog.RoleData `json:"roles"`
	KeySet  string             `json:"key_set"`
	Policy  policyImage        `json:"policy"`
	Catalog string             `json:"catalog"`
	Rules   intents.Rules      `json:"rules"`

	DirectoryAt int64                       `json:"directory_at"`
	Tenants     map[string]tenantImage      `json:"tenants"`
	APIKeys     map[string]apiKeyRow        `json:"api_keys"`
	Retained    map[string][]retentionImage `json:"retained"`
	Revoked     map[string]time.Time        `json:"revoked"`

	Plans    int                     `json:"plans"` // how many stand behind this
	Orders   map[int64]openImage     `json:"orders"`
	Unknown  map[string]unknownImage `json:"unknown"`
	Holds    map[int64]holdImage     `json:"holds"`
	Released map[int64]int64         `json:"released"`
	Settled  map[int64]string        `json:"settled"`
	Erased   int                     `json:"erased"` // how many record.erase there were
	Blobless map[int64]bool          `json:"blobless"`
}

// besideImage is what two states that saw the same records may differ in: what a record
// touched stands beside it, and a process forgets erasures that it has carried out. Who
// goes on from a snapshot looks at all of these, as after reading all records.
type besideImage struct {
	Touched map[storage.Subject]int64 `json:"touched"`
	Window  storage.Window            `json:"window"`
	Erasing []Erasure                 `json:"erasing"`
}

type policyImage struct {
	Digest   string  `json:"digest"`
	Revision int64   `json:"revision"`
	Pushed   *Pushed `json:"pushed"`
}

type tenantImage struct {
	Roles map[string][]string        `json:"roles"`
	Users map[string]catalog.User    `json:"users"`
	Pins  map[string]intents.Pin     `json:"pins"`
	Data  map[string]json.RawMessage `json:"data"`
	Keys  map[string]catalog.APIKey  `json:"keys"`
}

type retentionImage struct {
	Since time.Time         `json:"since"`
	Days  storage.Retention `json:"days"`
}

type planImage struct {
	Name      string               `json:"name"` // "tenant/plan_id"
	View      catalog.PlanView     `json:"view"`
	Opened    int64                `json:"opened"`
	Said      []int64              `json:"said"`
	Claimed   int64                `json:"claimed"`
	Unheld    bool                 `json:"unheld"`
	Roles     []string             `json:"roles"`
	Client    string               `json:"client"`
	Trace     string               `json:"trace"`
	Exhausted bool                 `json:"exhausted"`
	Tasks     []taskImage          `json:"tasks"`
	Results   map[int][]string     `json:"results"`
	ByIntent  map[string]refImage  `json:"by_intent"`
	Facts     []*catalog.OrderFact `json:"facts"`
	Settled   map[string]bool      `json:"settled"`
}

type refImage struct {
	Position int64 `json:"position"`
	Revision int   `json:"revision"`
	Step     int   `json:"step"`
}

type taskImage struct {
	ID       string           `json:"id"`
	Tenant   string           `json:"tenant"`
	User     string           `json:"user"`
	KID      string           `json:"kid"`
	Public   []byte           `json:"public"`
	Session  string           `json:"session"`
	Turn     string           `json:"turn"`
	Revision int              `json:"revision"`
	Step     int              `json:"step"`
	Spec     catalog.PlanStep `json:"spec"`
	InputKey string           `json:"input_key"`
	Deadline time.Time        `json:"deadline"`
	Ended    string           `json:"ended"`
}

// placeImage names the plan of an order, and its fact in that; noFact: it has none.
type placeImage struct {
	Plan string `json:"plan"` // "tenant/plan_id"; empty: none
	Fact int    `json:"fact"`
}

const noFact = -1

type openImage struct {
	placeImage
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	Step   int    `json:"step"`
	Rev    int    `json:"rev"`
	Task   string `json:"task"`
	Type   string `json:"type"`
	Lost   int    `json:"lost"`
}

type unknownImage struct {
	placeImage
	Position int64  `json:"position"`
	Tenant   string `json:"tenant"`
}

type holdImage struct {
	Order     Order             `json:"order"`
	Terms     intents.HoldTerms `json:"terms"`
	Deadline  time.Time         `json:"deadline"`
	Approvals []approvalImage   `json:"approvals"`
}

type approvalImage struct {
	User   string       `json:"user"`
	KID    string       `json:"kid"`
	Signer intents.Role `json:"signer"`
	Roles  []string     `json:"roles"`
	Grant  Grant        `json:"grant"`
	At     time.Time    `json:"at"`
}

// Digest of the state, "sha256:" and hex, and the position after the last record
// that it has seen. Two states that saw the same records have the same digest. The
// error is that of a state that could not fold a record (Err).
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
	m := image{
		Next: s.next, Rests: s.rests, Last: s.last, Beside: beside,
		Origin: s.origin, Root: s.root, Roles: s.roles, KeySet: s.keySetToken,
		Policy: policyImage{s.policy.digest, s.policy.revision, s.policy.pushed}, Catalog: s.catalog, Rules: s.rules,
		DirectoryAt: s.dir.at, Tenants: map[string]tenantImage{}, APIKeys: s.apiKeys, Retained: map[string][]retentionImage{}, Revoked: s.revoked,
		Plans: len(s.plans), Orders: map[int64]openImage{}, Unknown: map[string]unknownImage{}, Holds: map[int64]holdImage{},
		Released: s.holds.released, Settled: s.settled, Erased: s.erasures.number, Blobless: s.erasures.blobs,
	}
	for id, t := range s.dir.tenants {
		m.Tenants[id] = tenantImage{t.roles, t.users, t.pins, t.data, t.keys}
	}
	for who, said := range s.retained {
		for _, r := range said {
			m.Retained[who] = append(m.Retained[who], retentionImage{r.since, r.days})
		}
	}
	for at, x := range s.orders {
		m.Orders[at] = openImage{placeOf(x.plan, x.fact), x.id, x.tenant, x.step, x.rev, x.task, x.typ, x.lost}
	}
	for id, x := range s.unknown {
		m.Unknown[id] = unknownImage{placeOf(x.plan, x.fact), x.position, x.tenant}
	}
	for at, h := range s.holds.waiting {
		y := holdImage{Order: h.order, Terms: h.terms, Deadline: h.deadline}
		for _, a := range h.approvals {
			y.Approvals = append(y.Approvals, approvalImage{a.user, a.kid, a.signer, a.roles, a.grant, a.at})
		}
		m.Holds[at] = y
	}
	buffered := bufio.NewWriter(w)
	enc := json.NewEncoder(buffered)
	enc.SetEscapeHTML(false) // arguments stay as they were signed
	if err := enc.Encode(m); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.plans)) {
		if err := enc.Encode(s.plans[name].image(name)); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

func placeOf(p *plan, fact *catalog.OrderFact) placeImage {
	if p == nil {
		return placeImage{Fact: noFact}
	}
	return placeImage{p.view.TenantID + "/" + p.view.PlanID, slices.Index(p.facts, fact)}
}

func (p *plan) image(name string) planImage {
	m := planImage{
		Name: name, View: p.view, Opened: p.opened, Said: p.said, Claimed: p.claimed, Unheld: p.unheld, Roles: p.roles, Client: p.client, Trace: p.trace,
		Exhausted: p.exhausted, Results: p.results, ByIntent: map[string]refImage{}, Facts: p.facts, Settled: p.settled,
	}
	for id, r := range p.byIntent {
		m.ByIntent[id] = refImage{r.position, r.revision, r.step}
	}
	for _, t := range p.tasks {
		m.Tasks = append(m.Tasks, taskImage{
			t.id, t.tenant, t.user, t.kid, t.public, t.session, t.turn, t.revision, t.step, t.spec, t.inputKey, t.deadline, t.ended,
		})
	}
	return m
}

// decode is the state of an image.
func decode(r io.Reader) (*State, error) {
	lines := json.NewDecoder(r)
	var m image
	if err := lines.Decode(&m); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	s := New()
	s.next, s.rests, s.last, s.origin, s.root, s.roles = m.Next, m.Rests, m.Last, m.Origin, m.Root, m.Roles
	var err error
	if m.KeySet != "" { // else there is no genesis yet
		if s.keySet, s.keys, err = intents.OpenKeySet(m.KeySet, s.root); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		if s.origin != Origin(s.root) {
			return nil, errors.New("state: the root key is not the log's")
		}
	}
	s.keySetToken, s.policy, s.catalog, s.rules = m.KeySet, policy{m.Policy.Digest, m.Policy.Revision, m.Policy.Pushed}, m.Catalog, m.Rules
	s.dir.at, s.settled, s.erasures.number, s.holds.released = m.DirectoryAt, m.Settled, m.Erased, m.Released
	s.apiKeys, s.revoked, s.erasures.blobs = m.APIKeys, m.Revoked, m.Blobless
	if m.Beside != nil {
		maps.Copy(s.touched, m.Beside.Touched)
		s.window, s.erasures.pending = m.Beside.Window, m.Beside.Erasing
	}
	for id, t := range m.Tenants {
		s.dir.tenants[id], s.dir.own[id] = &tenant{t.Roles, t.Users, t.Pins, t.Data, t.Keys}, true
	}
	for who, said := range m.Retained {
		for _, r := range said {
			s.retained[who] = append(s.retained[who], retention{r.Since, r.Days})
		}
	}
	for range m.Plans {
		var p planImage
		if err := lines.Decode(&p); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		if final(p.View.Status) && p.View.CompletedAt == nil {
			return nil, errors.New("state: a plan is closed, and not said when")
		}
		s.putPlan(p)
	}
	if _, err := lines.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("state: more than it says")
	}
	slices.SortFunc(s.leaving.closed, func(a, b closedPlan) int { return a.at.Compare(b.at) })
	for at, x := range m.Orders {
		o := &openOrder{id: x.ID, tenant: x.Tenant, step: x.Step, rev: x.Rev, task: x.Task, typ: x.Type, lost: x.Lost}
		if o.plan, o.fact, err = s.place(x.placeImage); err != nil {
			return nil, err
		}
		o.plan.await()
		s.orders[at] = o
	}
	for id, x := range m.Unknown {
		u := unknown{position: x.Position, tenant: x.Tenant}
		if u.plan, u.fact, err = s.place(x.placeImage); err != nil {
			return nil, err
		}
		u.plan.await()
		s.unknown[id] = u
	}
	for at, y := range m.Holds {
		h := &hold{order: y.Order, terms: y.Terms, deadline: y.Deadline}
		for _, a := range y.Approvals {
			h.approvals = append(h.approvals, approval{a.User, a.KID, a.Signer, a.Roles, a.Grant, a.At})
		}
		s.holds.waiting[at], s.holds.byID[y.Order.Decision.IntentID] = h, at
	}
	return s, nil
}

func (s *State) putPlan(m planImage) {
	p := &plan{
		view: m.View, opened: m.Opened, said: m.Said, claimed: m.Claimed, unheld: m.Unheld, roles: m.Roles, client: m.Client, trace: m.Trace,
		exhausted: m.Exhausted, results: m.Results, byIntent: map[string]orderRef{}, facts: m.Facts, settled: m.Settled,
	}
	for id, r := range m.ByIntent {
		p.byIntent[id] = orderRef{r.Position, r.Revision, r.Step}
	}
	for _, x := range m.Tasks {
		t := &task{
			id: x.ID, tenant: x.Tenant, user: x.User, kid: x.KID, public: x.Public, plan: p, planID: m.View.PlanID, session: x.Session, turn: x.Turn,
			revision: x.Revision, step: x.Step, spec: x.Spec, inputKey: x.InputKey, deadline: x.Deadline, ended: x.Ended,
		}
		p.tasks = append(p.tasks, t)
		s.tasks[t.tenant+"/"+t.id], s.taskKID[t.kid] = t, t.tenant+"/"+t.id
	}
	s.plans[m.Name] = p
	if !final(p.view.Status) {
		s.open[p.view.TenantID]++
		s.openAll++
	} else {
		s.leaving.closed = append(s.leaving.closed, closedPlan{*p.view.CompletedAt, p})
	}
}

// place finds the plan and the fact that an image names.
func (s *State) place(x placeImage) (*plan, *catalog.OrderFact, error) {
	if x.Plan == "" {
		return nil, nil, nil
	}
	p, ok := s.plans[x.Plan]
	switch {
	case !ok || x.Fact >= len(p.facts) || x.Fact < noFact:
		return nil, nil, errors.New("state: names a plan or an order that it does not have")
	case x.Fact == noFact:
		return p, nil, nil
	}
	return p, p.facts[x.Fact], nil
}
