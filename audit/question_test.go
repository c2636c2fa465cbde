package audit_test

import (
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// mirror puts into each decision that allows the policy's input.
const mirror = `
obligations contains {"name": "notify", "value": json.marshal(input)}
`

// TestRouterAndAuditorAskTheSame: for each type of the catalog the router and the auditor give the policy the same input, to the
// byte, when an intent is decided and when a held one is released: the policy's input is an obligation, and
// those of a replay are compared. A new type fails here until a scene writes one that is allowed.
func TestRouterAndAuditorAskTheSame(t *testing.T) {
	w := newWorld(t)
	tree := policies.Embedded().Deciding()
	tree["authz/obligations.rego"] = append(tree["authz/obligations.rego"], mirror...)
	for _, content := range tree {
		w.blobs.put(content)
	}
	w.blobs.put(tree.Manifest())
	_, err := w.Policy.ReplaceTree(t.Context(), policies.Tree{Source: tree}, w.Router.SelfProof)
	w.Must(err)
	w.Must(w.Router.PolicyChanged(t.Context()))
	w.live(8)
	w.asks()
	w.approvals()
	w.runs()
	w.examples(w.mirrored())
	w.rest() // it ends with another policy
	asked := w.mirrored()
	for _, row := range catalog.Builtin().Rows() {
		if asked[row.Type] == 0 && row.Type != state.TypeErase {
			t.Errorf("no %s is allowed: write one in a scene", row.Type)
		}
	}
	if asked[released] == 0 {
		t.Error("nothing was released")
	}
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.FirstBad != nil {
		t.Errorf("%+v, first bad %+v", r, r.FirstBad)
	}
}

// released represents releases among types.
const released = "(release)"

// mirrored counts, by type, the decisions that contain the policy's input.
func (w *world) mirrored() map[string]int {
	w.Helper()
	asked := map[string]int{}
	for _, rec := range w.Records() {
		var typ string
		var d intents.Decision
		switch rec.Kind {
		case storage.KindIntent:
			o, err := state.ReadIntent(rec)
			w.Must(err)
			typ, d = o.Type, o.Decision
		case storage.KindRelease:
			rel, err := state.ReleaseOf(rec)
			w.Must(err)
			held, err := state.ReadIntent(w.Records()[rel.Target])
			w.Must(err)
			asked[released]++
			typ, d = held.Type, rel.Decision
		default:
			continue
		}
		if d.Verdict == intents.Allow && len(d.Obligations) > 0 {
			asked[typ]++
		}
	}
	return asked
}

// examples writes an intent of each other type that executors carry out, with the example of its schema. That
// some of them cannot be carried out does not matter.
func (w *world) examples(but map[string]int) {
	w.Helper()
	w.Pin("pages", catalog.Pure)
	task, reads := w.Begun("examples", "rank").Started(1), w.Begun("reads", "pages").Started(1)
	for _, row := range catalog.Builtin().Rows() {
		if row.Executor == catalog.ExecutorRouter || but[row.Type] > 0 {
			continue
		}
		schema, err := row.ArgsSchema()
		w.Must(err)
		args := schema.Part("").Example()
		if row.Type == "skill.load" {
			args = catalog.SkillLoad{Skill: "rank"} // one that is approved
		}
		if row.Type == "resource.read" {
			w.Do(reads.Intent(row.Type, catalog.ResourceRead{Skill: "pages"}))
			continue
		}
		for role, by := range map[intents.Role]intents.Signer{intents.RoleGateway: w.Gateway, intents.RoleManager: w.Manager, intents.RolePlanner: w.Planner} {
			if row.MaySign(role) {
				w.Do(routertest.Intent{By: by, Type: row.Type, Args: args})
			}
		}
		if row.MaySign(intents.RoleTask) {
			w.Do(task.Intent(row.Type, args))
		}
		if row.MaySign(intents.RoleOperator) {
			w.Admin(row.Type, args)
		}
	}
}
