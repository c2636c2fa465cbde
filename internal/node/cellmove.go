package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// CellAt is a cell, and the directory with all its keys.
type CellAt struct {
	Config Config
	Dir    string
}

// operate is a router of the cell with the operator's key, for a moment.
func (c CellAt) operate(ctx context.Context, genesis string) (*Node, func() error, error) {
	cfg, cluster := c.Config, *c.Config.Cluster
	cluster.Roles, cluster.operates, cluster.genesis = []string{natsserver.Router}, true, genesis
	cluster.Keys = []string{CellKeys(c.Dir, natsserver.Router), CellKeys(c.Dir, string(intents.RoleOperator))}
	cfg.Cluster, cfg.Listen, cfg.Metrics = &cluster, "", ""
	return Start(ctx, cfg)
}

// Moving is a move of a tenant from one cell to another.
type Moving struct {
	Tenant   string
	From, To CellAt
	Wait     time.Duration        // for what is open
	Tell     func(string, ...any) // what is done next
}

// Moved says what a move has come to; scripts rely on it.
type Moved struct {
	Tenant string `json:"tenant"`
	From   string `json:"from"` // origins
	To     string `json:"to"`
	// Left and Came are the positions of the records that say that the tenant left the one log,
	// and came to the other.
	Left      int64    `json:"left"`
	Came      int64    `json:"came"`
	Orders    int      `json:"orders"` // that this run has sealed in the other log
	Documents int      `json:"documents"`
	Blobs     int      `json:"blobs"`
	Schedules []string `json:"schedules"` // "user/id", that stay behind
}

// MoveTenant moves a tenant: it leaves, ends what is open, comes with all that it goes on with,
// and arrives.
//
// Crash: each step is a record or a copy, and the same call goes on behind what is there. Until
// the last one the tenant begins nothing in either cell.
func MoveTenant(ctx context.Context, m Moving) (out Moved, err error) {
	return out, m.between(ctx, func(b *moving) (err error) {
		out, err = b.move(ctx)
		return err
	})
}

// StayTenant takes back that a tenant leaves, unless it has arrived.
func StayTenant(ctx context.Context, m Moving) error {
	return m.between(ctx, func(b *moving) error { return b.stay(ctx) })
}

// moving is a move with a router in each cell.
type moving struct {
	Moving
	old, new *Node
	orders   int
}

func (m Moving) between(ctx context.Context, do func(*moving) error) error {
	old, stopOld, err := m.From.operate(ctx, "")
	if err != nil {
		return fmt.Errorf("the old cell: %w", err)
	}
	next, stopNew, err := m.To.operate(ctx, "")
	if err != nil {
		return errors.Join(fmt.Errorf("the new cell: %w", err), stopOld())
	}
	return errors.Join(do(&moving{Moving: m, old: old, new: next}), stopNew(), stopOld())
}

func (m *moving) move(ctx context.Context) (out Moved, err error) {
	out = Moved{Tenant: m.Tenant, From: m.old.Origin(), To: m.new.Origin()}
	if err := m.leave(ctx); err != nil {
		return out, err
	}
	work, err := m.drain(ctx)
	if err != nil {
		return out, err
	}
	rows, _ := m.old.directory.Rows(m.Tenant)
	out.Left, out.Schedules = rows.Place.Left, append([]string{}, work.Schedules...)
	came, err := m.came(ctx, rows.Place.Left)
	if err != nil {
		return out, err
	}
	at, err := m.arriving(ctx, came)
	if out.Came = at.At; err != nil || at.Arrived {
		return out, err
	}
	err = m.directory(ctx, rows, came)
	if err == nil {
		err = m.agents(ctx, came)
	}
	if err == nil {
		out.Documents, err = m.documents(ctx, at.At)
	}
	if err == nil {
		out.Blobs, err = m.blobs(ctx)
	}
	if err == nil {
		m.Tell("%s arrives in %s", m.Tenant, out.To)
		err = m.order(ctx, m.new, came, state.TypeAdminPut, catalog.AdminPut{Tenant: m.Tenant, Arrived: &struct{}{}})
	}
	out.Orders = m.orders
	return out, err
}

// order seals an order as the operator of a cell, under a key that the same step of the same
// move has again.
func (m *moving) order(ctx context.Context, n *Node, of, typ string, args any) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	key := "move_" + strings.TrimPrefix(intents.Digest(fmt.Appendf(nil, "%s\n%s\n%s", of, typ, raw)), "sha256:")[:32]
	for {
		a, err := n.operatorUnder(ctx, key, typ, args)
		if a == nil || a.Code != intents.RateLimited {
			m.orders++
			return err
		}
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// leave has the tenant leave the old cell, unless it has.
func (m *moving) leave(ctx context.Context) error {
	rows, there := m.old.directory.Rows(m.Tenant)
	if !there {
		return fmt.Errorf("the old cell has no tenant %s", m.Tenant)
	}
	switch to := m.new.Origin(); {
	case rows.Place.To == to:
		return nil
	case rows.Place.To != "":
		return fmt.Errorf("%s has left for %s", m.Tenant, rows.Place.To)
	}
	if err := m.fits(); err != nil {
		return err
	}
	m.Tell("%s leaves %s: from now on it begins nothing there", m.Tenant, m.old.Origin())
	return m.moved(ctx, m.new.Origin())
}

// moved says where the tenant goes; with no origin, that it stays.
func (m *moving) moved(ctx context.Context, origin string) error {
	of := fmt.Sprint(m.old.directory.Directory().At()) // it may leave, stay and leave again
	return m.order(ctx, m.old, of, state.TypeAdminPut, catalog.AdminPut{Tenant: m.Tenant, Moved: &catalog.Moved{Origin: origin}})
}

// fits finds what would keep the tenant from arriving, before it leaves.
func (m *moving) fits() error {
	old, next := m.From.Config.Documents, m.To.Config.Documents
	if old.URL != "" && old.URL == next.URL && old.Prefix == next.Prefix {
		return errors.New("documents: both cells have theirs in one place: give each cell a documents_prefix of its own")
	}
	if rows, there := m.new.directory.Rows(m.Tenant); there && rows.Place.To == "" && (rows.Place.Came == nil || rows.Place.Arrived) {
		return fmt.Errorf("the new cell has a tenant %s of its own", m.Tenant)
	}
	for _, x := range m.old.directory.Misput(m.new.catalog) {
		if x.Tenant == m.Tenant {
			return fmt.Errorf("%s of %s would be refused in the new cell: %s; first %s", x.Row, m.Tenant, x.Reason, x.Do)
		}
	}
	if old, next := m.old.directory.View().PolicyDigest(), m.new.directory.View().PolicyDigest(); old != next {
		m.Tell("mind that other policies are in force in the new cell: %s, and %s in the old one", next, old)
	}
	return nil
}

// drainPace is how often a move looks whether something is open.
const drainPace = 200 * time.Millisecond

// drain waits until nothing of the tenant is open. Nothing begins meanwhile.
func (m *moving) drain(ctx context.Context) (work state.Work, err error) {
	wait, cancel := context.WithTimeout(ctx, m.Wait)
	defer cancel()
	err = clock.Every(wait, drainPace, func() bool {
		work = m.old.directory.Work(m.Tenant)
		return work.Drained()
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s has left and is still at work: %s. Run the command again to go on waiting, or with --stay to take it back", m.Tenant, openOf(work))
	}
	return work, err
}

// openOf counts what is open, and names some of it.
func openOf(w state.Work) string {
	var out []string
	for _, x := range []struct {
		what string
		ids  []string
	}{{"plans", w.Plans}, {"runs", w.Runs}, {"orders that wait for people", w.Holds}, {"other orders", w.Orders}} {
		if n := len(x.ids); n > 0 {
			out = append(out, fmt.Sprintf("%d %s (%s)", n, x.what, strings.Join(x.ids[:min(n, 3)], ", ")))
		}
	}
	return strings.Join(out, ", ")
}

// came is what the new cell is told of the record that says that the tenant has left.
func (m *moving) came(ctx context.Context, left int64) (string, error) {
	rec, err := m.old.journal.Get(ctx, left)
	if err != nil {
		return "", err
	}
	a, err := m.old.router.Order(ctx, left)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(catalog.Came{Origin: m.old.Origin(), Position: left, Record: rec.Digest(), Receipt: a.Receipt})
	return string(raw), err
}

// arriving has the tenant come to the new cell, unless it has.
func (m *moving) arriving(ctx context.Context, came string) (at state.Place, err error) {
	var c catalog.Came
	if err := json.Unmarshal([]byte(came), &c); err != nil {
		return at, err
	}
	is := func() bool {
		rows, _ := m.new.directory.Rows(m.Tenant)
		at = rows.Place
		return at.Came != nil && at.Came.Origin == c.Origin && at.Came.Position == c.Position
	}
	if is() {
		return at, nil
	}
	m.Tell("%s comes to %s", m.Tenant, m.new.Origin())
	if err = m.order(ctx, m.new, came, state.TypeAdminPut, catalog.AdminPut{New: &catalog.Tenant{ID: m.Tenant, Came: &c}}); err == nil && !is() {
		err = errors.New("the new cell has the tenant from elsewhere")
	}
	return at, err
}

// put is an order that makes a row of the directory.
type put struct {
	what, typ string
	args      any
}

// puts are the orders that make a tenant's rows, each behind those that it rests on.
func puts(r state.TenantRows) (out []put) {
	row := func(what string, a catalog.AdminPut) {
		a.Tenant = r.Tenant
		out = append(out, put{what, state.TypeAdminPut, a})
	}
	for _, x := range r.Roles {
		row("role "+x.Role, catalog.AdminPut{Role: &x})
	}
	for _, x := range r.Users {
		row("user "+x.UserID, catalog.AdminPut{User: &x})
	}
	for _, revoked := range []bool{true, false} { // one in force may have the id of one that is not
		for _, x := range r.APIKeys {
			if x.Revoked == revoked {
				row("API key "+x.ID, catalog.AdminPut{APIKey: &x})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Data)) {
		if value := r.Data[name]; strings.TrimSpace(string(value)) != "null" { // else it was taken away
			row("data "+name, catalog.AdminPut{Data: &catalog.Data{Key: name, Value: value}})
		}
	}
	for _, p := range r.Skills {
		out = append(out, put{"skill " + p.Skill, state.TypeSkillApprove, catalog.SkillApprove{
			Tenant: r.Tenant, Skill: p.Skill, Digest: p.Digest, Effect: catalog.Effect(p.Effect), Destructive: p.Destructive, Server: p.Server,
			InputSchema: r.Inputs[p.Skill], CacheSeconds: p.CacheSeconds, Shared: p.Shared,
		}})
	}
	return out
}

// directory makes the rows that the tenant does not have yet.
func (m *moving) directory(ctx context.Context, rows state.TenantRows, came string) error {
	now, _ := m.new.directory.Rows(m.Tenant)
	var have []string
	for _, x := range puts(now) {
		raw, err := json.Marshal(x.args)
		if err != nil {
			return err
		}
		have = append(have, string(raw))
	}
	for _, x := range puts(rows) {
		raw, err := json.Marshal(x.args)
		if err != nil {
			return err
		}
		if slices.Contains(have, string(raw)) {
			continue
		}
		m.Tell("%s", x.what)
		if err := m.order(ctx, m.new, came, x.typ, x.args); err != nil {
			return err
		}
	}
	return nil
}

// agents puts the tenant's agents in force. Files that are too large for an order are blobs.
func (m *moving) agents(ctx context.Context, came string) error {
	digest, bundle := m.old.directory.InForce(m.Tenant)
	if now, _ := m.new.directory.InForce(m.Tenant); digest == "" || now == digest {
		return nil
	}
	if bundle == "" {
		content, err := state.ContentOf("", digest, func(d string) ([]byte, error) { return m.old.systemBlob(ctx, d) })
		if err == nil {
			err = content.Keep(func(file []byte) error {
				_, _, err := m.new.blobs.Keep(ctx, storage.SystemTenant, strings.NewReader(string(file)))
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("the agents: %w", err)
		}
	}
	push := catalog.RegistryPush{Tenant: m.Tenant, Digest: digest, Bundle: bundle}
	for _, n := range []*Node{m.old, m.new} {
		if rows, _ := n.directory.Rows(m.Tenant); rows.Registry != nil {
			push.Revision = max(push.Revision, rows.Registry.Revision+1)
		}
	}
	m.Tell("push agents %s", digest)
	return m.order(ctx, m.new, came, state.TypeRegistryPush, push)
}

// stay takes back that the tenant leaves.
func (m *moving) stay(ctx context.Context) error {
	rows, _ := m.old.directory.Rows(m.Tenant)
	at := rows.Place
	if at.To != m.new.Origin() {
		return fmt.Errorf("%s has not left for %s", m.Tenant, m.new.Origin())
	}
	if now, _ := m.new.directory.Rows(m.Tenant); now.Place.Arrived && now.Place.Came.Origin == m.old.Origin() && now.Place.Came.Position == at.Left {
		return fmt.Errorf("%s has arrived in %s: move it back with the two cells the other way round", m.Tenant, m.new.Origin())
	}
	m.Tell("%s stays in %s", m.Tenant, m.old.Origin())
	return m.moved(ctx, "")
}
