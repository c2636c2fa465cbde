package cli

import (
	"context"
	"fmt"
	"strings"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/policies"
)

func policyExplain(c *command) {
	c.ids = &recordedIntents
	policy := c.Flags().String("policy", "", "directory to decide with, instead of the recorded policy")
	c.ofRecord(func(a *datadir.Archive, args []string) (answer, error) {
		instead, err := namedEngine(c.Context(), *policy)
		if err != nil {
			return answer{}, err
		}
		x, err := audit.Explain(c.Context(), a.Source, args[0], instead)
		if err != nil {
			return answer{}, err
		}
		var input strings.Builder
		if x.Policy != nil {
			err = printJSON(&input, x.Policy.Input)
		}
		return answer{data: x, text: render("explained", x) + input.String()}, err
	})
}

// namedEngine compiles the tree that a flag names, an extension on the embedded one; none: nil.
func namedEngine(ctx context.Context, place string) (*policies.Engine, error) {
	return namedOn(ctx, place, policies.Embedded())
}

// namedOn is namedEngine with an extension on another tree.
func namedOn(ctx context.Context, place string, base policies.Source) (*policies.Engine, error) {
	if place == "" {
		return nil, nil
	}
	tree, err := readTree([]string{place})
	if err != nil {
		return nil, err
	}
	if policies.IsExtension(tree) {
		if tree, err = policies.On(base, tree); err != nil {
			return nil, malformed(err)
		}
	}
	e, err := policies.New(ctx, tree)
	if err != nil {
		return nil, malformed(err)
	}
	return e, nil
}

func policyBacktest(c *command) {
	var bundle, policy, today string
	var o audit.Trial
	c.dataFlag()
	c.stands = nil // a bundle needs none
	c.answer = func([]string) (a answer, err error) {
		if o.Today, err = namedEngine(c.Context(), today); err != nil {
			return a, err
		}
		if show, done := c.bar(); show != nil {
			o.Progress = func(n int64) { show(n, 0) }
			defer done()
		}
		b, err := c.backtest(bundle, policy, o)
		if b.Flipped > 0 {
			a.end = fmt.Errorf("%d of %d decisions change", b.Flipped, b.Records)
		}
		a.data, a.text = b, render("backtest.table", b)
		return a, err
	}
	c.Flags().StringVar(&policy, "policy", "", "new policy: a directory; an extension is tried on today's")
	c.Flags().StringVar(&today, "today", "", "today's policy: a directory (default: the one in force in the record)")

	c.Flags().StringVar(&bundle, "bundle", "", "take the records of this bundle (writ audit export); verify it first")
	c.since(&o.Since, "since", "only intents from this RFC 3339 time, or from this long ago (7d, 12h)")
	c.Flags().StringVar(&o.Tenant, "tenant", "", "only intents of this tenant")
	c.mustGive("policy")
}

func (c *command) backtest(bundle, policy string, o audit.Trial) (b audit.Backtest, err error) {
	if bundle != "" {
		if o.New, err = c.trialOf(policy, o.Today); err != nil {
			return b, err
		}
		r, closeAll, err := openBundle(c.std, bundle)
		if err != nil {
			return b, malformed(err)
		}
		defer closeAll()
		if b, err = audit.BacktestBundle(c.Context(), r, o); err != nil {
			err = malformed(err)
		}
		return b, err
	}
	err = c.archive(func(a *datadir.Archive) (err error) {
		if o.Today == nil {
			source, err := audit.PolicyInForce(c.Context(), a.Source)
			if err == nil {
				o.Today, err = policies.New(c.Context(), source)
			}
			if err != nil {
				return malformed(fmt.Errorf("today's policy: %w: name one with --today", err))
			}
		}
		if o.New, err = c.trialOf(policy, o.Today); err != nil {
			return err
		}
		if b, err = audit.BacktestRecords(c.Context(), a.Source, o); err != nil {
			return malformed(err)
		}
		return nil
	})
	return b, err
}

// trialOf compiles the policy that is tried: an extension on today's, or else on the embedded one.
func (c *command) trialOf(policy string, today *policies.Engine) (*policies.Engine, error) {
	base := policies.Embedded()
	if today != nil {
		base = today.Source()
	}
	return namedOn(c.Context(), policy, base)
}
