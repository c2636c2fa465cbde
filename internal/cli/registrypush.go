package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/eval"
	"aob.dev/writ/state"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
)

func registryPush(c *command) {
	c.tenantFlags()
	cases := c.Flags().String("eval", "", "try the agents first: ask the cases of this directory, and refuse agents that pass fewer of them than --min")
	trial := c.Flags().String("trial", "", "the tenant in which --eval tries them, as the API key of WRIT_API_KEY, the context or the data directory")
	least := c.minFlag()
	c.answer = func(args []string) (answer, error) {
		if (*cases == "") != (*trial == "") {
			return answer{}, usage(errors.New("--eval and --trial go together"))
		}
		r, err := c.soundRegistry(args[0])
		if err != nil {
			return answer{}, err
		}
		bundle, err := r.Pack()
		if err == nil && bundle == "" {
			err = c.keepRegistry(r)
		}
		if err != nil {
			return answer{}, err
		}
		next := func(*state.Registry) (catalog.RegistryPush, error) {
			return catalog.RegistryPush{Digest: r.Digest(), Bundle: bundle}, nil
		}
		if *cases != "" {
			report, err := c.tryRegistry(*trial, *cases, *least, next)
			if err != nil {
				return answer{}, err
			}
			if !report.OK {
				return answer{data: report, text: reportText(report), note: "below the threshold: not pushed\n", end: unless(false, "below the threshold")}, nil
			}
		}
		return c.pushRegistry(next)
	}
}

// keepRegistry stores a registry that is too large for an intent among the blobs of the data
// directory.
//
// Crash: some of the blobs exist, no record names them, and the next push finds them.
func (c *command) keepRegistry(r *agents.Revision) error {
	b, err := datadir.OpenBlobs(c.Context(), c.dir)
	if err != nil {
		return malformed(err)
	}
	return errors.Join(r.Keep(func(content []byte) error {
		_, _, err := b.Keep(c.Context(), storage.SystemTenant, bytes.NewReader(content))
		return err
	}), b.Close())
}

// tryRegistry puts a revision in force in a tenant for trials, and evaluates it there.
func (c *command) tryRegistry(trial, cases string, least float64, next func(*state.Registry) (catalog.RegistryPush, error)) (*eval.Report, error) {
	tenant := c.tenant
	c.tenant = trial
	_, err := c.pushRegistry(next)
	c.tenant = tenant
	if err != nil {
		return nil, err
	}
	return c.evaluate(client.Client{URL: c.url, Key: targetOf(c.Command).Key.Value}, cases, least)
}

func registryRevert(c *command) {
	c.tenantFlags()
	c.answer = func([]string) (answer, error) {
		return c.pushRegistry(func(now *state.Registry) (catalog.RegistryPush, error) {
			if now == nil || now.Before == "" {
				return catalog.RegistryPush{}, errors.New("there is no revision before the one in force: writ registry push DIR puts another in force")
			}
			return catalog.RegistryPush{Digest: now.Before}, nil
		})
	}
}

// pushRegistry submits the next revision of a tenant's agents.
func (c *command) pushRegistry(next func(now *state.Registry) (catalog.RegistryPush, error)) (answer, error) {
	d, err := c.rebuildState()
	if err != nil {
		return answer{}, err
	}
	var push catalog.RegistryPush
	p, err := c.tenantIntent("registry.push", func(tenant string) (any, error) {
		rows, ok := d.Rows(tenant)
		if !ok {
			return nil, fmt.Errorf("no such tenant: %s", tenant)
		}
		push, err = next(rows.Registry)
		push.Tenant, push.Revision = tenant, 1
		if rows.Registry != nil {
			push.Revision += rows.Registry.Revision
		}
		return push, err
	})
	if err != nil {
		return answer{}, err
	}
	note := p.text() + c.unmatched(push.Tenant, func(where string) bool {
		kind, _, _ := strings.Cut(where, " ")
		return kind == "agent" || kind == "workflow" || kind == "schedule"
	})
	return answer{note: note, text: fmt.Sprintf("revision %d of %s in force  %s  by %s\n", push.Revision, push.Tenant, push.Digest, p.IntentID), data: struct {
		put
		Tenant   string `json:"tenant"`
		Revision int64  `json:"revision"`
		Digest   string `json:"digest"`
	}{p, push.Tenant, push.Revision, push.Digest}}, nil
}
