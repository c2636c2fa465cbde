package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state"
)

// approving has the arguments of `writ skill approve`.
type approving struct {
	digest, effect, destructive, world, server, summary string
	trusted                                             bool
	seconds                                             int
	shared, sure                                        bool
}

func skillApprove(c *command) {
	var told approving
	c.tenantFlags()
	c.ValidArgsFunction = c.completes(c.skillWords)
	f := c.Flags()
	f.BoolVar(&told.sure, "yes", false, "do not ask")
	f.IntVar(&told.seconds, "cache-seconds", 0, "how long an answer may serve equal calls of the same user, 1 to 86400; pure skills only (default: never)")
	f.BoolVar(&told.shared, "shared", false, "with --cache-seconds: equal calls of all users of the tenant")
	f.StringVar(&told.digest, "digest", "", "sha256:<hex> of the manifest, as writ logs it (default: the version declared now)")
	f.StringVar(&told.effect, "effect", "", "effect of a call: pure, idempotent, once")
	f.BoolVar(&told.trusted, "trusted", false, "what its server says is trusted (default: as the server's setting trust says)")
	f.StringVar(&told.world, "open-world", "", "whether it reaches, and shows, what anybody may know: yes or no (default: as the server's settings say, else not known)")
	f.StringVar(&told.destructive, "destructive", "", "whether a call may destroy something, and so waits for people by default: yes or no (default: yes if the server says so, else if it does more than read)")
	f.StringVar(&told.summary, "summary", "", "sentence that people read who approve a call, with {path} for a member of its input: \"Refund order {order_id}: {amount} EUR\"")
	f.StringVar(&told.server, "server", "", "server of the tool, shown in lists; the digest binds the server")
	c.answer = func(args []string) (answer, error) {
		names, err := c.expanded(args)
		switch {
		case err != nil:
			return answer{}, err
		case told.digest != "" && (len(names) > 1 || strings.Contains(args[0], "*")):
			return answer{}, usage(errors.New("--digest is one version of one skill: name that skill alone"))
		}
		var list []catalog.SkillApprove
		for _, name := range names { // all before the first is sent
			a, err := c.approval(name, told)
			if err != nil {
				return answer{}, err
			}
			list = append(list, a)
		}
		done, err := c.submitEach("skill.approve", list)
		if err == nil {
			done.note += c.unmatched(cmp.Or(c.tenant, "default"), func(where string) bool {
				return slices.ContainsFunc(list, func(a catalog.SkillApprove) bool { return where == datadir.WhereApproved(a.Skill) })
			})
		}
		return done, err
	}
}

// expanded puts the skills that servers declare in the place of names with *.
func (c *command) expanded(args []string) (names []string, err error) {
	var versions []approval.Version
	for _, arg := range args {
		if !strings.Contains(arg, "*") {
			names = append(names, arg)
			continue
		}
		if versions, err = approval.ReadVersions(c.dir); err != nil {
			return nil, malformed(err)
		}
		before := len(names)
		for _, x := range versions {
			if x.Declared && x.Fault == "" && x.For(cmp.Or(c.tenant, "default")) && (intents.Pin{Skill: x.Name}).Matches(arg) {
				names = append(names, x.Name)
			}
		}
		if len(names) == before {
			return nil, fmt.Errorf("no skill server of %s declares a skill like %q: see writ skill list", c.dir, arg)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// approval is that of one skill.
func (c *command) approval(name string, told approving) (a catalog.SkillApprove, err error) {
	var pinned intents.Pin
	a = catalog.SkillApprove{Skill: name, Digest: told.digest, Server: told.server, CacheSeconds: told.seconds, Shared: told.shared}
	if a.Digest == "" {
		s, err := c.declaredNow(name, told.sure)
		if err != nil {
			return a, err
		}
		pinned = s.pinned
		a.Skill, a.Digest, a.Server = s.now.Name, s.now.Digest, s.now.Server
	}
	declared := ""
	if versions, err := approval.ReadVersions(c.dir); err == nil { // without them it is as it is written
		for _, x := range versions {
			if x.Digest == a.Digest {
				a.Skill, a.InputSchema, declared = x.Name, approval.PinnedSchema(x.InputSchema), x.Destructive
				a.Trusted, a.OpenWorld = x.Trusted, x.OpenWorld
			}
		}
	}
	a.Destructive = cmp.Or(told.destructive, declared, pinned.Destructive)
	a.Trusted, a.OpenWorld = a.Trusted || told.trusted, cmp.Or(told.world, a.OpenWorld, pinned.OpenWorld)
	for flag, value := range map[string]string{"--destructive": a.Destructive, "--open-world": a.OpenWorld} {
		if !slices.Contains([]string{"", intents.Yes, intents.No}, value) {
			return a, usage(fmt.Errorf("%s: %q is neither yes nor no", flag, value))
		}
	}
	a.Summary = cmp.Or(told.summary, pinned.Summary)
	if err := namesInput(a.Summary, a.InputSchema); err != nil {
		return a, err
	}
	effect := cmp.Or(told.effect, pinned.Effect)
	known := []string{string(catalog.Pure), string(catalog.Idempotent), string(catalog.Once)}
	if !slices.Contains(known, effect) {
		if effect == "" {
			return a, usage(fmt.Errorf("--effect is missing: no version is approved yet, and the server's hint is only a claim; say what a call does, one of %s", strings.Join(known, ", ")))
		}
		return a, usage(fmt.Errorf("--effect: %q is none of %s%s", effect, strings.Join(known, ", "), didYouMean(effect, known)))
	}
	a.Effect = catalog.Effect(effect)
	return a, nil
}

// namesInput refuses a summary that names what the input cannot have.
func namesInput(summary string, schema json.RawMessage) error {
	var input struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &input) != nil || len(input.Properties) == 0 {
		return nil //nolint:nilerr // nothing is known of it
	}
	for _, path := range catalog.Placeholders(summary) {
		name, _, _ := strings.Cut(path, ".")
		if known := slices.Sorted(maps.Keys(input.Properties)); input.Properties[name] == nil {
			return usage(fmt.Errorf("--summary: {%s} is no member of the skill's input: %s%s", path, strings.Join(known, ", "), didYouMean(name, known)))
		}
	}
	return nil
}

// submitEach sends one intent for each skill, in turn. Intents accepted before a failure stay.
func (c *command) submitEach(typ string, list []catalog.SkillApprove) (answer, error) {
	var done []answer
	for _, a := range list {
		one, err := c.puts(typ, func(tenant string) any {
			a.Tenant = tenant
			return a
		})
		if err != nil && len(done) > 0 {
			err = fmt.Errorf("%s: %w; %d skills before it were changed", a.Skill, err, len(done))
		}
		if err != nil {
			return answer{}, err
		}
		done = append(done, one)
	}
	if len(done) == 1 {
		return done[0], nil
	}
	var out answer
	all := make([]any, len(done))
	for i, one := range done {
		all[i] = one.data
		out.text += list[i].Skill + "\t" + one.text
		out.note += one.note
	}
	out.data = all
	return out, nil
}

func skillRevoke(c *command) {
	c.tenantFlags()
	c.ValidArgsFunction = c.completes(c.skillWords)
	c.answer = func(args []string) (answer, error) {
		d, err := c.rebuildState()
		if err != nil {
			return answer{}, err
		}
		tenant := cmp.Or(c.tenant, "default")
		rows, ok := d.Rows(tenant)
		if !ok {
			return answer{}, fmt.Errorf("no such tenant: %s%s", tenant, didYouMean(tenant, d.Tenants()))
		}
		var list []catalog.SkillApprove
		for _, arg := range args {
			before := len(list)
			for _, pin := range rows.Skills {
				if pin.Matches(arg) {
					list = append(list, catalog.SkillApprove{Skill: pin.Skill, Digest: pin.Digest, Effect: catalog.Effect(pin.Effect), Revoked: true})
				}
			}
			if len(list) == before {
				return answer{}, fmt.Errorf("no skill %q is approved for tenant %s: see writ skill list", arg, tenant)
			}
		}
		return c.submitEach("skill.approve", list)
	}
}

// listedSkill is a skill that is approved, or one that a server declares and nobody has approved.
type listedSkill struct {
	intents.Pin
	Approved bool   `json:"approved"`
	Claims   string `json:"claims,omitempty"` // the effect that its server's hints claim
}

func skillList(c *command) {
	c.listing("skills", "no skill is approved, and no server declares one: writ up --skills URL|COMMAND names a server", func(rows state.TenantRows) any {
		list := []listedSkill{}
		for _, pin := range rows.Skills {
			list = append(list, listedSkill{Pin: pin, Approved: true})
		}
		versions, _ := approval.ReadVersions(c.dir) // without them those that are approved
		for _, x := range versions {
			if _, pinned := x.Pin(rows.Skills); x.Declared && !pinned && x.For(rows.Tenant) {
				list = append(list, listedSkill{Pin: intents.Pin{Skill: x.Name, Digest: x.Digest, Server: x.Server}, Claims: string(x.Claim)})
			}
		}
		return list
	})
}
