package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/audit"
	"aob.dev/writ/gateway/console"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// office is what the console reads of a node beside the HTTP interface: what the command line
// reads in the data directory.
type office struct{ *Node }

var _ console.Office = office{}

// Sealed implements console.Office.
func (n office) Sealed(ctx context.Context, position int64) (s console.Sealed, err error) {
	rec, err := n.journal.Get(ctx, position)
	if err != nil {
		return s, err
	}
	o, err := state.ReadOrder(rec)
	return console.Sealed{KID: o.KID, Role: string(o.Signer), User: o.User, Type: o.Type, Args: o.Args}, err
}

// Skills implements console.Office.
func (n office) Skills(tenant string) (out []console.Skill, err error) {
	versions, err := datadir.ReadSkillVersions(n.cfg.Dir)
	if err != nil {
		return nil, err
	}
	pins := n.directory.View().Pins(tenant)
	used := map[string]bool{}
	for _, v := range versions {
		if !v.Declared || v.Tenants != nil && !slices.Contains(v.Tenants, tenant) {
			continue
		}
		s := console.Skill{Name: v.Name, Now: version(v)}
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
			out = append(out, console.Skill{Name: pin.Skill, Pin: &pin})
		}
	}
	slices.SortFunc(out, func(a, b console.Skill) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// version of a skill for people.
func version(v datadir.SkillVersion) *console.Version {
	var b bytes.Buffer
	fmt.Fprintf(&b, "server: %s\nhints: %s\ndescription:\n%s\n", v.Server, v.Effect, v.Description)
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
	return &console.Version{Server: v.Server, Digest: v.Digest, Effect: v.Effect, Text: b.String(), InputSchema: datadir.PinnedSchema(v.InputSchema)}
}

// Agents implements console.Office.
func (n office) Agents(ctx context.Context, tenant string) (out []console.Revision, err error) {
	read := func(digest string) ([]byte, error) { return n.systemBlob(ctx, digest) }
	for _, of := range slices.Compact([]string{storage.SystemTenant, tenant}) {
		digest, bundle := n.directory.InForce(of)
		if digest == "" {
			continue
		}
		now, err := state.ContentOf(bundle, digest, read)
		if err != nil {
			return nil, err
		}
		r := console.Revision{Tenant: of, Digest: digest, Files: texts(now)}
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

// Policy implements console.Office.
func (n office) Policy() map[string]string { return stringsOf(n.policy.Engine().Source()) }

// Explain implements console.Office.
func (n office) Explain(ctx context.Context, id string) (raw json.RawMessage, err error) {
	err = n.read(ctx, func(a *datadir.Archive) error {
		x, err := audit.Explain(ctx, a.Source, id, nil)
		if err == nil {
			raw, err = json.Marshal(x)
		}
		return err
	})
	return raw, err
}

// read opens the data of the node for an audit.
func (n office) read(ctx context.Context, f func(*datadir.Archive) error) error {
	a, err := n.Archive(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(a), a.Close())
}

// Backtest implements console.Office.
func (n office) Backtest(ctx context.Context, tenant, file, text string) (out console.Backtest, err error) {
	today := n.policy.Engine()
	changed := policies.Source{}
	for name, was := range today.Source() {
		changed[name] = was
	}
	changed[file] = []byte(text)
	tried, err := policies.New(ctx, changed)
	if err != nil {
		return console.Backtest{Refused: err.Error()}, ctx.Err()
	}
	unchanged, err := policies.New(ctx, today.Source())
	if err != nil {
		return out, err
	}
	err = n.read(ctx, func(a *datadir.Archive) error {
		b, err := audit.BacktestRecords(ctx, a.Source, audit.Trial{New: tried, Today: unchanged, Tenant: tenant, Workers: 1})
		out = console.Backtest{Records: b.Records, Unreplayable: b.Unreplayable, Flipped: b.Flipped, Policy: b.Policy}
		for _, g := range b.Groups {
			out.Groups = append(out.Groups, console.Flips{Rule: g.Rule, Before: g.Before, After: g.After, Count: g.Count, Samples: g.Samples})
		}
		return err
	})
	return out, err
}

// Bundle implements console.Office.
func (n office) Bundle(ctx context.Context, w io.Writer, tenant string) error {
	return n.read(ctx, func(a *datadir.Archive) error {
		_, err := audit.Export(ctx, w, a.Source, audit.Selection{Tenant: tenant, Complete: true, Masked: true})
		return err
	})
}

// Witnesses implements console.Office.
func (n office) Witnesses() (names []string) {
	for _, w := range n.cfg.Witnesses {
		names = append(names, w.Key.Name())
	}
	return names
}
