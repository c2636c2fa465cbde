package policies

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

func signer(t *testing.T, role intents.Role) intents.Signer {
	t.Helper()
	s, err := intents.GenerateSigner(role)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signed is a verified intent of a gateway's grant, by a task key.
func signed(t *testing.T, args string, c *intents.Context) *intents.Envelope {
	t.Helper()
	gateway, task := signer(t, intents.RoleGateway), signer(t, intents.RoleTask)
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	grant, err := intents.IssueGrant(gateway, intents.Grant{
		Issuer: "writ/test", Audience: "writ/test", Subject: "ana", Tenant: "acme", Roles: []string{"user"},
		Session: c.SessionID, Turn: c.TurnID, IssuedAt: now.Unix(), Expires: now.Add(time.Minute).Unix(), ID: "g1",
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, _, err := intents.Sign(task, intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: "skill.call", Args: json.RawMessage(args)},
		Actor: intents.Actor{UserID: "ana", Tenant: "acme", Grant: grant},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(now), TTLSec: 120, Audience: "writ/test",
			IdempotencyKey: intents.Digest([]byte("k")), Capabilities: []string{"skills:call"},
		},
		Context: c,
	})
	if err != nil {
		t.Fatal(err)
	}
	u, err := intents.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	keys := intents.KeysFunc(func(kid string) (intents.Key, error) {
		for _, s := range []intents.Signer{gateway, task} {
			if s.KID == kid {
				return s.VerificationKey(), nil
			}
		}
		return intents.Key{}, intents.Refuse(intents.KeyUnknown, "", "unknown")
	})
	e, err := u.Verify(intents.Verifier{Keys: keys, Origin: "writ/test", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func decisionInputs() intents.DecisionInputs {
	return intents.DecisionInputs{
		Signer: intents.SignerInput{KID: "kid", Role: "task"}, Roles: []string{"user"},
		Task:      &intents.TaskInput{TaskID: "task_1", PlanID: "plan_1", Revision: 1, Step: 2, Skills: []string{"outlet_list"}, Deadline: "2026-11-20T10:05:00Z"},
		Plan:      &intents.PlanInput{PlanID: "plan_1", Status: "executing", Epoch: 1, Revision: 1, Steps: 3},
		Skill:     &intents.SkillInput{Name: "outlet_list", Digest: intents.Digest(nil), Effect: "once"},
		Approvals: []intents.Approval{{UserID: "ben", At: "2026-11-20T10:00:00.000Z"}},
		Now:       "2026-11-20T10:00:01.000Z",
	}
}

// TestInputMatchesSchema validates Input against schemas/policy_input.schema.json, with
// everything present and with as little as possible.
func TestInputMatchesSchema(t *testing.T) {
	schema, err := schemas.Lookup(schemas.Base + "policy_input.json")
	if err != nil {
		t.Fatal(err)
	}
	full := &intents.Context{
		SessionID: "s", TurnID: "t", PlanID: "plan_1", Revision: 1, Step: 2, TaskID: "task_1", RunID: "r", NodeID: "n", Occurrence: 2, Ask: "2.0", Call: "3.1",
		Agent: &intents.Agent{Name: "task", Digest: intents.Digest(nil)}, Cause: intents.Digest(nil), Labels: map[string]string{"a": "b"},
	}
	for name, in := range map[string]map[string]any{
		"full": Input(signed(t, `{"skill":"outlet_list","input":{"n":1.5}}`, full), decisionInputs()),
		"bare": Input(signed(t, `{"skill":"outlet_list"}`, &intents.Context{}), intents.DecisionInputs{Signer: intents.SignerInput{KID: "kid", Role: "task"}, Now: decisionInputs().Now}),
	} {
		doc, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range schema.ValidateBytes(doc) {
			t.Errorf("%s: %s: %s\n%s", name, v.Pointer, v.Reason, doc)
		}
	}
}

// paths lists every path of a document, and one below each that it does not have.
func paths(doc map[string]any, above []string) (out [][]string) {
	for name, v := range doc {
		path := append(slices.Clone(above), name)
		out = append(out, path, append(slices.Clone(path), "no such member"))
		if inner, ok := v.(map[string]any); ok {
			out = append(out, paths(inner, path)...)
		}
	}
	return out
}

// TestInputIsLookedUp: each value that a decision looks up is that of the whole input, and what a policy is
// given has the same at each path that it can read.
func TestInputIsLookedUp(t *testing.T) {
	if !slices.IsSortedFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) }) {
		t.Error("members are not sorted")
	}
	labels := &intents.Context{PlanID: "plan_1", Step: 2, Labels: map[string]string{"a": "b"}, Agent: &intents.Agent{Name: "task", Digest: intents.Digest(nil)}}
	tool := decisionInputs()
	tool.Skill = &intents.SkillInput{Name: "server.outlet_list", Digest: intents.Digest(nil), Effect: "once", Kind: "agent"}
	tool.Patch = &intents.PatchInput{Nodes: []intents.NodeInput{{ID: "n", Type: "t", Effect: "pure"}}, Rewired: []string{"m"}}
	unpinned := decisionInputs()
	unpinned.Skill, unpinned.Plan = &intents.SkillInput{Name: "outlet_list"}, nil
	for name, f := range map[string]intents.DecisionInputs{"full": decisionInputs(), "bare": {}, "by its tool": tool, "unpinned": unpinned} {
		for _, c := range []*intents.Context{{}, labels} {
			e := signed(t, `{"skill":"outlet_list","input":{"n":1.5}}`, c)
			whole := Input(e, f)
			all := append(paths(whole, nil), []string{"task", "skills"}, []string{"skill", "kind"}, []string{"context", "labels", "a"}, []string{"nothing"}, []string{"patch", "nodes"})
			for _, l := range lookups(all) {
				got, there := l.value(newSubject(e, &f))
				want, is := below(whole, l.path)
				gotKey, _ := appendValue(nil, got)
				if wantKey, ok := appendValue(nil, want); there != is || !ok || !bytes.Equal(gotKey, wantKey) {
					t.Errorf("%s: input.%s: looked up %v %v, in the input %v %v", name, strings.Join(l.path, "."), got, there, want, is)
				}
			}
			reads := engine(t, Embedded()).lookups
			part, err := newSubject(e, &f).read(reads, 0)
			if err != nil {
				t.Fatal(err)
			}
			given, err := ast.JSON(part.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range reads {
				got, there := below(given, l.path)
				want, is := below(whole, l.path)
				wanted, err := plainJSON(want)
				if err != nil || there != is || !cmp.Equal(got, wanted) {
					t.Errorf("%s: input.%s: given %v %v, in the input %v %v", name, strings.Join(l.path, "."), got, there, want, is)
				}
			}
		}
	}
}

// TestInputFromRecordedInputs: recorded decision inputs give the same input.
func TestInputFromRecordedInputs(t *testing.T) {
	e := signed(t, `{"skill":"outlet_list","input":{"n":1.5}}`, &intents.Context{PlanID: "plan_1"})
	raw, err := json.Marshal(decisionInputs())
	if err != nil {
		t.Fatal(err)
	}
	var again intents.DecisionInputs
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Input(e, decisionInputs()), Input(e, again)); diff != "" {
		t.Errorf("(-live +recorded):\n%s", diff)
	}
}

// TestInputIsWhatIsDecided decides a real intent from end to end.
func TestInputIsWhatIsDecided(t *testing.T) {
	e := engine(t, Embedded())
	f := decisionInputs()
	intent := signed(t, `{"skill":"outlet_list"}`, &intents.Context{PlanID: "plan_1"})
	if r := decide(t, e, Input(intent, f)); !r.Allow {
		t.Errorf("pinned: %+v", r)
	}
	f.Skill = nil
	r := decide(t, e, Input(intent, f)).Refusal()
	if r == nil || r.Code != intents.PolicyDenied || !cmp.Equal(r.PolicyIDs, []string{"writ.skill.unpinned"}) {
		t.Errorf("unpinned: %+v", r)
	}
}
