package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/bus/natsserver"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/monitor"
	"aob.dev/writ/internal/office"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/policies"
	"aob.dev/writ/router/httpapi"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// desk has what the console reads of a node beside the HTTP interface.
type desk struct{ *Node }

var _ httpapi.Office = desk{}

// Sealed implements httpapi.Office.
func (n desk) Sealed(ctx context.Context, position int64) (s office.Sealed, err error) {
	rec, err := n.journal.Get(ctx, position)
	if err != nil {
		return s, err
	}
	o, err := state.ReadOrder(rec)
	return office.Sealed{KID: o.KID, Role: string(o.Signer), User: o.User, Type: o.Type, Args: o.Args}, err
}

// Skills implements httpapi.Office.
func (n desk) Skills(ctx context.Context, tenant string) (out []office.Skill, err error) {
	versions, err := n.declared(ctx)
	if err != nil {
		return nil, err
	}
	pins := n.directory.View().Pins(tenant)
	used := map[string]bool{}
	for _, v := range versions {
		if !v.Declared || !v.For(tenant) {
			continue
		}
		s := office.Skill{Name: v.Name, Now: version(v)}
		if pin, ok := v.Pin(pins); ok {
			s.Pin = &pin
			used[pin.Skill] = true
			i := slices.IndexFunc(versions, func(x datadir.SkillVersion) bool { return x.Digest == pin.Digest })
			if i >= 0 && pin.Digest != v.Digest {
				s.Before = version(versions[i])
			}
		}
		out = append(out, s)
	}
	for _, pin := range pins {
		if !used[pin.Skill] {
			out = append(out, office.Skill{Name: pin.Skill, Pin: &pin})
		}
	}
	slices.SortFunc(out, func(a, b office.Skill) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// version of a skill for people.
func version(v datadir.SkillVersion) *office.Version {
	var b bytes.Buffer
	fmt.Fprintf(&b, "server: %s\nhints: %s\ndescription:\n%s\n", v.Server, v.Claim, v.Description)
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{{"input", v.InputSchema}, {"output", v.OutputSchema}, {"annotations", v.Annotations}} {
		fmt.Fprintf(&b, "%s:\n", part.name)
		if json.Indent(&b, part.raw, "", "  ") != nil {
			b.Write(part.raw)
		}
		b.WriteByte('\n')
	}
	return &office.Version{Server: v.Server, Digest: v.Digest, Effect: v.Effect, Claim: v.Claim, Destructive: v.Destructive, Text: b.String(), InputSchema: datadir.PinnedSchema(v.InputSchema)}
}

// Agents implements httpapi.Office.
func (n desk) Agents(ctx context.Context, tenant string, foreign bool) (out []office.Revision, err error) {
	read := func(digest string) ([]byte, error) { return n.systemBlob(ctx, digest) }
	for _, of := range slices.Compact([]string{storage.SystemTenant, tenant}) {
		digest, bundle := n.directory.InForce(of)
		if digest == "" {
			continue
		}
		if of != tenant && !foreign {
			out = append(out, office.Revision{Tenant: of, Digest: digest})
			continue
		}
		now, err := state.ContentOf(bundle, digest, read)
		if err != nil {
			return nil, err
		}
		r := office.Revision{Tenant: of, Digest: digest, Files: texts(now)}
		if digest, bundle = n.directory.BeforeInForce(of); digest != "" {
			before, err := state.ContentOf(bundle, digest, read)
			if err != nil {
				return nil, err
			}
			r.Before = texts(before)
		}
		out = append(out, r)
	}
	return out, nil
}

func texts(r *agents.Revision) map[string]string { return stringsOf(r.Files()) }

func stringsOf[T ~string | ~[]byte](files map[string]T) map[string]string {
	out := make(map[string]string, len(files))
	for name, text := range files {
		out[name] = string(text)
	}
	return out
}

// Policy implements httpapi.Office.
func (n desk) Policy() map[string]string { return stringsOf(n.policy.Engine().Source()) }

// Explain implements httpapi.Office.
func (n desk) Explain(ctx context.Context, id string) (raw json.RawMessage, err error) {
	err = n.read(ctx, func(s audit.Source) error {
		x, err := audit.Explain(ctx, s, id, nil)
		if err == nil {
			raw, err = json.Marshal(x)
		}
		return err
	})
	return raw, err
}

// read opens the record for an audit. In a cell it is that of the journal, without the ledger.
func (n desk) read(ctx context.Context, f func(audit.Source) error) error {
	if !n.alone() {
		return f(audit.Source{Origin: n.Origin(), Records: n.journal, Blobs: n.blobs})
	}
	a, err := n.Archive(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(a.Source), a.Close())
}

// Backtest implements httpapi.Office. The tree on trial is a tenant's: another process compiles and
// asks it, and neither it nor the tree in force sees directory data of others.
func (n desk) Backtest(ctx context.Context, tenant string, t office.Trial) (out office.Backtest, err error) {
	today := n.policy.Engine()
	changed := policies.Source{}
	for name, was := range today.Source() {
		changed[name] = was
	}
	changed[t.File] = []byte(t.Text)
	tried, err := policies.NewApart(ctx, changed, tenant)
	if err != nil {
		return office.Backtest{Refused: err.Error()}, ctx.Err()
	}
	defer tried.Close()
	unchanged, err := today.Of(ctx, tenant)
	if err != nil {
		return out, err
	}
	err = n.read(ctx, func(s audit.Source) error { //nolint:contextcheck // the process of the trial has a context of its own, under ctx
		b, err := audit.BacktestRecords(tried.Context(), s, audit.Trial{New: tried.Engine(), Today: unchanged, Tenant: tenant, Workers: 1})
		out = office.Backtest{Records: b.Records, Unreplayable: b.Unreplayable, Flipped: b.Flipped, Policy: b.Policy}
		for _, g := range b.Groups {
			out.Groups = append(out.Groups, office.Flips{Rule: g.Rule, Before: g.Before, After: g.After, Count: g.Count, Samples: g.Samples})
		}
		return err
	})
	if over := tried.Err(); over != nil {
		return office.Backtest{Refused: over.Error()}, ctx.Err()
	}
	return out, err
}

// Bundle implements httpapi.Office. The secret of tags and the ledger's key, which a bundle
// is made with, are not given to a router of a cell.
func (n desk) Bundle(ctx context.Context, w io.Writer, tenant string) error {
	if !n.alone() {
		p := problem.New(intents.NotFound, "", "a router of a cell has neither the ledger's key nor the secret of its tags, which a bundle is made with")
		p.Hint = "ask an operator for it, who types: writ cell copy cell copy --config writ.yaml --instance NAME && writ audit export --data copy --tenant " + tenant
		return p
	}
	return n.read(ctx, func(s audit.Source) error {
		_, err := audit.Export(ctx, w, s, audit.Selection{Tenant: tenant, Complete: true, Masked: true})
		return err
	})
}

// figuresOf is the stretch of time that a page shows figures of.
const figuresOf = time.Hour

// Health implements httpapi.Office.
func (n desk) Health(ctx context.Context, tenant string, figures bool) (any, error) {
	d, err := n.Look(ctx, tenant)
	out := struct {
		office.Health
		Figures *monitor.Figures `json:"figures,omitempty"`
	}{Health: office.Health{Stores: d.Stores, Conditions: n.health.List()}}
	if err == nil && figures {
		var f monitor.Figures
		now := n.cfg.Now()
		f, err = n.figures.of(tenant, now, func() (monitor.Figures, error) {
			return monitor.Read(context.WithoutCancel(ctx), n.documents, []string{tenant}, now.Add(-figuresOf), now) // for all who ask
		})
		out.Figures = &f
	}
	return out, err
}

// shownFigures are those of a tenant, read at most once a minute however many ask.
type shownFigures struct {
	reading singleflight.Group
	mu      sync.Mutex // guards all
	all     map[string]monitor.Figures
}

func (s *shownFigures) of(tenant string, now time.Time, read func() (monitor.Figures, error)) (monitor.Figures, error) {
	s.mu.Lock()
	maps.DeleteFunc(s.all, func(_ string, f monitor.Figures) bool { return now.Sub(f.Until).Abs() >= time.Minute })
	f, ok := s.all[tenant]
	s.mu.Unlock()
	if ok {
		return f, nil
	}
	got, err, _ := s.reading.Do(tenant, func() (any, error) {
		f, err := read()
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.all == nil {
				s.all = map[string]monitor.Figures{}
			}
			s.all[tenant] = f
		}
		return f, err
	})
	f, _ = got.(monitor.Figures)
	return f, err
}

// declared are the versions of skills that servers declare, as a skills executor has last seen
// them. Where none answers, none are known.
func (n desk) declared(ctx context.Context) (list []datadir.SkillVersion, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	raw, err := n.conns[natsserver.Router].Request(ctx, bus.SkillVersions, nil)
	if err != nil {
		n.cfg.Log.WarnContext(ctx, "no executor of skills says what servers declare", slog.String("error", err.Error()))
		return nil, nil
	}
	return list, json.Unmarshal(raw, &list)
}

// tellVersions answers that.
func (n *Node) tellVersions(ctx context.Context, _ []byte) []byte {
	list, err := datadir.ReadSkillVersions(n.cfg.Dir)
	raw, bad := json.Marshal(list)
	if err = errors.Join(err, bad); err != nil {
		n.cfg.Log.WarnContext(ctx, "the declared versions of skills cannot be read", slog.String("error", err.Error()))
	}
	return raw
}
