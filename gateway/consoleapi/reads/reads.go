// Package reads implements the console API of a process that follows the record.
package reads

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"aob.dev/writ/audit"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/gateway"
	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/monitor"
	"aob.dev/writ/policies"
	"aob.dev/writ/router/httpapi"
	"aob.dev/writ/state"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
)

// Reads are the reads of one process. All fields but Archive are required.
type Reads struct {
	Journal interface {
		storage.Records
		Holder(ctx context.Context, position int64) (storage.Holder, error)
	}
	State     *state.State
	Live      *policies.Live
	Documents storage.Documents
	Recent    *monitor.Recent
	Board     *health.Board
	// Source is the record for an audit if the process has no Archive: without the ledger.
	Source audit.Source
	// Archive opens the data directory of the process, with the ledger; nil: none.
	Archive func(context.Context) (*datadir.Archive, error)
	Blob    func(ctx context.Context, digest string) ([]byte, error) // of tenant system
	Look    func(ctx context.Context, tenant string) (gateway.Deep, error)
	// Declared asks an executor of skills for the versions that servers declare.
	Declared func(context.Context) (json.RawMessage, error)
	Log      *slog.Logger
}

var _ httpapi.ConsoleAPI = (*Reads)(nil)

// Signed implements httpapi.ConsoleAPI.
func (r *Reads) Signed(ctx context.Context, position int64) (s consoleapi.Signed, err error) {
	rec, err := r.Journal.Get(ctx, position)
	if err != nil {
		return s, err
	}
	o, err := state.ReadIntent(rec)
	if err != nil {
		return s, err
	}
	s = consoleapi.Signed{
		KID: o.KID, Role: string(o.Signer), User: o.User, Key: intents.CallerOf(o.Grant.Client), Type: o.Type, Skill: o.Skill, Args: o.Args,
		Context: o.Context, At: o.At, Standing: o.Standing,
	}
	if o.Decision.Verdict == intents.Deny {
		return s, nil
	}
	h, err := r.Journal.Holder(ctx, position)
	if err == nil && h.State == storage.StateDone {
		rec, err = r.Journal.Get(ctx, h.Outcome)
		s.Ended = rec.At
	}
	if err == nil && o.Decision.Verdict == intents.Hold {
		s.Decided, err = r.decided(ctx, o)
	}
	return s, err
}

// decided is what people decided about a held intent.
func (r *Reads) decided(ctx context.Context, of state.Intent) (out []consoleapi.Decided, err error) {
	q := storage.Query{Terms: map[string][]string{"held_intent_id": {of.Decision.IntentID}}, Sort: "position"}
	found, err := r.Documents.Search(ctx, of.Tenant, storage.IndexIntents, q)
	if err != nil {
		return nil, err
	}
	for _, d := range found.Documents {
		rec, err := r.Journal.Get(ctx, d.Position)
		if err != nil {
			return nil, err
		}
		o, err := state.ReadIntent(rec)
		if err != nil {
			return nil, err
		}
		x := consoleapi.Decided{IntentID: o.Decision.IntentID, User: o.User, Key: intents.CallerOf(o.Grant.Client), At: o.At}
		if !o.Erased {
			a, err := state.ArgsOf[catalog.Approve](o)
			if err != nil {
				return nil, err
			}
			x.Decision, x.Items, x.Reason = a.Decision, a.Items, a.Reason
		}
		out = append(out, x)
	}
	return out, nil
}

// Skills implements httpapi.ConsoleAPI.
func (r *Reads) Skills(ctx context.Context, tenant string) (out []consoleapi.Skill, err error) {
	versions, err := r.versions(ctx)
	if err != nil {
		return nil, err
	}
	pins := r.State.View().Pins(tenant)
	used := map[string]bool{}
	for _, v := range versions {
		if !v.Declared || v.Fault != "" || !v.For(tenant) {
			continue
		}
		s := consoleapi.Skill{Name: v.Name, Now: version(v)}
		if pin, ok := v.Pin(pins); ok {
			s.Pin = &pin
			used[pin.Skill] = true
			i := slices.IndexFunc(versions, func(x approval.Version) bool { return x.Digest == pin.Digest })
			if i >= 0 && pin.Digest != v.Digest {
				s.Before = version(versions[i])
			}
		}
		out = append(out, s)
	}
	for _, pin := range pins {
		if !used[pin.Skill] {
			out = append(out, consoleapi.Skill{Name: pin.Skill, Pin: &pin})
		}
	}
	slices.SortFunc(out, func(a, b consoleapi.Skill) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// version describes a version of a skill for people.
func version(v approval.Version) *consoleapi.Version {
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
	for _, note := range v.Unchecked {
		fmt.Fprintf(&b, "not as declared: %s\n", note)
	}
	return &consoleapi.Version{Server: v.Server, Digest: v.Digest, Effect: v.Effect, Claim: v.Claim, Destructive: v.Destructive, Trusted: v.Trusted, OpenWorld: v.OpenWorld, Text: b.String(), InputSchema: approval.PinnedSchema(v.InputSchema)}
}

// Agents implements httpapi.ConsoleAPI.
func (r *Reads) Agents(ctx context.Context, tenant string, foreign bool) (out []consoleapi.Revision, err error) {
	read := func(digest string) ([]byte, error) { return r.Blob(ctx, digest) }
	for _, of := range slices.Compact([]string{storage.SystemTenant, tenant}) {
		_, digest, bundle := r.State.InForce(of)
		if digest == "" {
			continue
		}
		if of != tenant && !foreign {
			out = append(out, consoleapi.Revision{Tenant: of, Digest: digest})
			continue
		}
		now, err := state.ContentOf(bundle, digest, read)
		if err != nil {
			return nil, err
		}
		revision := consoleapi.Revision{Tenant: of, Digest: digest, Files: texts(now)}
		if digest, bundle = r.State.BeforeInForce(of); digest != "" {
			before, err := state.ContentOf(bundle, digest, read)
			if err != nil {
				return nil, err
			}
			revision.Before = texts(before)
		}
		out = append(out, revision)
	}
	return out, nil
}

func texts(of *agents.Revision) map[string]string { return stringsOf(of.Files()) }

func stringsOf[T ~string | ~[]byte](files map[string]T) map[string]string {
	out := make(map[string]string, len(files))
	for name, text := range files {
		out[name] = string(text)
	}
	return out
}

// Policy implements httpapi.ConsoleAPI.
func (r *Reads) Policy() map[string]string { return stringsOf(r.Live.Engine().Source()) }

// Explain implements httpapi.ConsoleAPI.
func (r *Reads) Explain(ctx context.Context, id string) (raw json.RawMessage, err error) {
	err = r.read(ctx, func(s audit.Source) error {
		x, err := audit.Explain(ctx, s, id, nil)
		if err == nil {
			raw, err = json.Marshal(x)
		}
		return err
	})
	return raw, err
}

// read opens the record for an audit. In a cell this is the journal, without the ledger.
func (r *Reads) read(ctx context.Context, f func(audit.Source) error) error {
	if r.Archive == nil {
		return f(r.Source)
	}
	a, err := r.Archive(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(a.Source), a.Close())
}

// Bundle implements httpapi.ConsoleAPI. A bundle requires the secret of tags and the ledger's
// key, which a router of a cell does not have.
func (r *Reads) Bundle(ctx context.Context, w io.Writer, tenant string) error {
	if r.Archive == nil {
		p := problem.New(intents.NotFound, "", "a router of a cell has neither the ledger's key nor the secret of its tags, which a bundle is made with")
		p.Hint = "ask an operator for it, who types: writ admin cell copy cell copy --config writ.yaml --instance NAME && writ audit export --data copy --tenant " + tenant
		return p
	}
	return r.read(ctx, func(s audit.Source) error {
		_, err := audit.Export(ctx, w, s, audit.Selection{Tenant: tenant, Complete: true, Masked: true})
		return err
	})
}

// Health implements httpapi.ConsoleAPI. It counts nothing: the figures are those that Recent has.
func (r *Reads) Health(ctx context.Context, tenant string, withFigures bool) (any, error) {
	d, err := r.Look(ctx, tenant)
	out := struct {
		consoleapi.Health
		Figures *monitor.Figures `json:"figures,omitempty"`
	}{Health: consoleapi.Health{Stores: d.Stores, Conditions: r.Board.List()}}
	if err == nil && withFigures {
		f, _ := r.Recent.Figures(tenant) // none are counted yet: their time is zero
		out.Figures = &f
	}
	return out, err
}

// versions returns the skill versions that servers declare, as last seen by a skills executor;
// empty if none answers.
func (r *Reads) versions(ctx context.Context) (list []approval.Version, err error) {
	raw, err := r.Declared(ctx)
	if err != nil {
		r.Log.WarnContext(ctx, "no executor of skills says what servers declare", slog.String("error", err.Error()))
		return nil, nil
	}
	return list, json.Unmarshal(raw, &list)
}
