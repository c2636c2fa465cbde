package cli

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
)

// readTree reads the tree of the directory that a command names; none: the embedded one.
func readTree(args []string) (policies.Source, error) {
	if len(args) == 0 {
		return policies.Embedded(), nil
	}
	tree, err := policies.ReadDir(args[0])
	if err != nil {
		err = malformed(err)
	}
	return tree, err
}

func policyCheck(c *command) {
	c.stands = func() error {
		if c.dir == "" {
			return nil
		}
		return datadir.Exists(c.dir)
	}
	c.Flags().StringVar(&c.dir, "data", "", "warn of names in the policy and in tenants' data that match nothing in this data directory")
	c.answer = func(args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, err
		}
		r, err := policies.CheckAny(tree)
		if err != nil {
			return answer{}, err
		}
		a := answer{data: r, text: render("policy.table", r)}
		if len(r.Volatile) > 0 {
			a.note = fmt.Sprintf("warning: %s is almost never the same twice: nearly every intent is evaluated again\n", strings.Join(r.Volatile, ", "))
		}
		if c.dir != "" {
			names, err := c.unmatchedWith(tree)
			if a.note += names; err != nil {
				return answer{}, err
			}
		}
		return a, nil
	}
}

// unmatchedWith lists the names that match nothing in a data directory if a tree is in force or,
// for an extension, added.
func (c *command) unmatchedWith(tree policies.Source) (text string, err error) {
	d, err := c.rebuildState()
	if err == nil && policies.IsExtension(tree) {
		tree, err = policies.Single(tree)
	}
	if err != nil {
		return "", err
	}
	versions, _ := approval.ReadVersions(c.dir) // without them those that are approved
	text = c.unmatchedInPolicy(tree, catalog.Builtin())
	for _, tenant := range d.Tenants() {
		text += warned(datadir.UnmatchedNames(d, tenant, versions))
	}
	return text, nil
}

func readSuite(args, places []string) (policies.Suite, error) {
	tree, err := readTree(args)
	if err != nil {
		return policies.Suite{}, err
	}
	if policies.IsExtension(tree) {
		if tree, err = policies.Single(tree); err != nil {
			return policies.Suite{}, err
		}
	}
	s := policies.Suite{Source: tree, Tables: map[string]*policies.Table{}}
	if len(places) == 0 && len(args) > 0 {
		for _, dir := range []string{filepath.Join(args[0], "testdata"), filepath.Join(filepath.Dir(filepath.Clean(args[0])), "testdata")} {
			if info, err := os.Stat(dir); err == nil && info.IsDir() {
				places = append(places, dir)
			}
		}
	}
	for _, place := range places {
		if err := readTables(place, s.Tables); err != nil {
			return s, err
		}
	}
	return s, nil
}

// readTables reads a decision table, or all *.yaml below a directory.
func readTables(place string, into map[string]*policies.Table) error {
	return filepath.WalkDir(place, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name != place && filepath.Ext(name) != ".yaml" {
			return err
		}
		f, err := os.Open(name) //nolint:gosec // G304: the user names it
		if err != nil {
			return err
		}
		defer f.Close()
		table, err := policies.ParseTable(f)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		into[name] = table
		return nil
	})
}

func policyTest(c *command) {
	tables := c.Flags().StringArray("tables", nil, "decision tables: a file, or a directory of *.yaml (default: testdata in the tree or beside it)")
	c.answer = func(args []string) (answer, error) {
		s, err := readSuite(args, *tables)
		if err != nil {
			return answer{}, malformed(err)
		}
		cases, err := s.Run(c.Context())
		tested := testedOf(cases)
		return answer{data: tested, text: caseTree(cases), end: tested.verdict()}, err
	}
}

// policyTestReport is `writ policy test --json`.
type policyTestReport struct {
	Tests  int             `json:"tests"`
	Failed int             `json:"failed"`
	Cases  []policies.Case `json:"cases"`
}

func testedOf(cases []policies.Case) policyTestReport {
	return policyTestReport{Tests: len(cases), Failed: failed(cases), Cases: append([]policies.Case{}, cases...)}
}

// failed counts the cases that did not pass.
func failed(cases []policies.Case) (n int) {
	for _, c := range cases {
		if !c.Passed {
			n++
		}
	}
	return n
}

// verdict is exit 1 for a failure, and if there are no tests.
func (t policyTestReport) verdict() error {
	switch {
	case t.Tests == 0:
		return errors.New("no tests: the tree has neither rules test_* nor decision tables")
	case t.Failed > 0:
		return fmt.Errorf("%d of %d failed", t.Failed, t.Tests)
	}
	return nil
}

// caseTree is the cases by suite: how many passed, and why others did not.
func caseTree(cases []policies.Case) string {
	by := map[string][]policies.Case{}
	for _, c := range cases {
		by[c.Suite] = append(by[c.Suite], c)
	}
	return render("tested", by)
}

func policyPush(c *command) {
	c.operatorFlags()
	revision := c.Flags().Int64("revision", 0, "revision, higher than the one in force")
	c.mustGive("revision")
	c.answer = func(args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, err
		}
		if *revision < 1 {
			return answer{}, usage(errors.New("--revision: must be at least 1"))
		}
		if _, err := policies.Check(tree); err != nil {
			return answer{}, err
		}
		raw, err := policies.BuildBundle(policies.Tree{Source: tree, Revision: *revision})
		if err != nil {
			return answer{}, err
		}
		push := catalog.PolicyPush{Revision: *revision, Digest: tree.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)}
		o, err := c.operator()
		if err != nil {
			return answer{}, err
		}
		a, err := c.submitAs(o, "policy.push", push)
		if err != nil {
			return answer{}, err
		}
		p := putBy(a)
		p.Changes = c.changesBy(o.Origin, "", a)
		types, _ := (&catalogFlags{url: c.url}).open(c.Context()) // of the router that has the policy now
		return answer{note: p.text() + c.unmatchedInPolicy(tree, types), text: fmt.Sprintf("revision %d in force  %s  by %s\n", push.Revision, push.Digest, a.IntentID), data: struct {
			put
			Revision int64  `json:"revision"`
			Digest   string `json:"digest"`
		}{p, push.Revision, push.Digest}}, nil
	}
}

// policyShadow begins, shows and ends the trial of a tree beside the one in force.
func policyShadow(c *command) {
	c.operatorFlags()
	end := c.Flags().Bool("end", false, "end the trial")
	c.answer = func(args []string) (answer, error) {
		value := json.RawMessage("null")
		switch {
		case *end && len(args) > 0:
			return answer{}, usage(errors.New("--end: it goes with no directory, since one tree is tried at a time"))
		case len(args) > 0:
			tree, err := readTree(args)
			if err != nil {
				return answer{}, err
			}
			if _, err := policies.CheckAny(tree); err != nil {
				return answer{}, err
			}
			raw, err := policies.BuildBundle(policies.Tree{Source: tree, Revision: 1})
			if err != nil {
				return answer{}, err
			}
			value, _ = json.Marshal(catalog.PolicyShadow{Since: time.Now().UTC(), Digest: tree.Digest(), Bundle: base64.StdEncoding.EncodeToString(raw)}) // plain data
		case !*end:
			return c.shadowReport()
		}
		a, err := c.intent("admin.put", catalog.AdminPut{Tenant: keydir.LocalTenant, Data: &catalog.Data{Key: catalog.PolicyShadowKey, Value: value}})
		if err != nil {
			return answer{}, err
		}
		out := answer{data: putBy(a), text: a.IntentID + "\n", note: "no tree is tried now\n"}
		if !*end {
			out.note = fmt.Sprintf("%s is tried on what is decided, for %d days, and decides nothing: writ policy shadow shows the differences\n", args[0], router.ShadowTerm/(24*time.Hour))
		}
		return out, nil
	}
}

// shadowReport is what the router of the data directory has stored.
func (c *command) shadowReport() (answer, error) {
	report, err := router.ReadShadow(c.Context(), durable.Document(datadir.PolicyShadow(c.dir)))
	if err != nil {
		return answer{}, malformed(err)
	}
	if report == nil {
		return answer{}, fmt.Errorf("no tree has been tried in %s: writ policy shadow DIR tries one. Of a cell, see Policies in the console", c.dir)
	}
	return answer{data: report, text: render("shadow.table", report)}, nil
}

// unmatchedInPolicy lists the names in a tree that match nothing, if the record of the data
// directory can be read.
func (c *command) unmatchedInPolicy(tree policies.Source, types *catalog.Catalog) string {
	d, err := c.rebuildState()
	engine, broken := policies.New(tree)
	if err != nil || broken != nil {
		return ""
	}
	versions, _ := approval.ReadVersions(c.dir) // without them those that are approved
	return warned(datadir.UnmatchedInPolicy(engine, d, types, versions))
}

func policyExplain(c *command) {
	c.ids = &recordedIntents
	policy := c.Flags().String("policy", "", "directory to decide with, instead of the recorded policy")
	c.ofRecord(func(a *datadir.Archive, args []string) (answer, error) {
		instead, err := namedEngine(*policy)
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
func namedEngine(place string) (*policies.Engine, error) {
	return namedOn(place, policies.Embedded())
}

// namedOn is namedEngine with an extension on another tree.
func namedOn(place string, base policies.Source) (*policies.Engine, error) {
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
	e, err := policies.New(tree)
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
		if o.Today, err = namedEngine(today); err != nil {
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
	restore := audit.Roomy()
	defer restore()
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
				o.Today, err = policies.New(source)
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
	return namedOn(policy, base)
}
