package router_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

// seesInputs denies every call with [1,2], wherever the value is.
const seesInputs = `package writ.ext.seen

# METADATA
# title: Not this value
# description: Nothing is done with this value.
# custom:
#   id: ext.seen
deny contains {"id": "ext.seen", "reason": "Nothing is done with this value."} if {
	input.intent.type in {"skill.call", "exec_python", "write_memory", "write_temp", "artifact.put", "kb.index"}
	some value in input.intent.args
	value == [1, 2]
}

# METADATA
# title: Not this value
# description: Nothing is done with this value.
# custom:
#   id: ext.seen
deny contains {"id": "ext.seen", "reason": "Nothing is done with this value."} if {
	some value in input.intent.args.inputs
	value == [1, 2]
}
`

// withPolicy puts a tree in force that has one more module.
func withPolicy(w *routertest.World, module string) {
	w.Helper()
	_, err := w.Policy.ReplaceTree(w.Context(), policies.Tree{Source: with(module)}, w.Router.SelfProof)
	w.Must(err)
	w.Must(w.Router.PolicyChanged(w.Context()))
}

// Policies see what an intent of any type only names as they see it by value: every type of the
// catalog that works on named data, by every kind of name.
func TestPolicySeesInputs(t *testing.T) {
	byType := map[string]map[string]any{
		"skill.call": {"skill": "send"}, "exec_python": {"script": "print(1)"}, "write_memory": {"label": "a"}, "write_temp": {},
		"artifact.put": {"media_type": "application/json"}, "kb.index": {"title": "t", "media_type": "text/plain"},
	}
	for _, row := range catalog.Builtin().Rows() {
		args, known := byType[row.Type]
		if row.DataAt == "" {
			continue
		}
		if !known {
			t.Errorf("%s works on named data, and no case of this test signs it", row.Type)
			continue
		}
		t.Run(row.Type, func(t *testing.T) {
			w, blobs, _ := withBlobs(t)
			w.Pin("send", catalog.Pure)
			task := w.Begun("p9", "send").Started(1)
			script := w.OK(task.Intent("exec_python", catalog.ExecPython{Script: "print(1)"}))
			file, err := blobs.Put(t.Context(), storage.Scope{Tenant: "default", Plan: routertest.PlanID("p9"), Revision: 1, Step: 1}, strings.NewReader("[1,2]"))
			w.Must(err)
			blob, _, err := blobs.Keep(t.Context(), "default", strings.NewReader("[1, 2]"))
			w.Must(err)
			withPolicy(w, seesInputs)
			for _, from := range []string{script.IntentID, file.ID, blob} {
				args["from"] = from
				a := w.Want(w.Do(task.Intent(row.Type, args)), intents.PolicyDenied)
				if !slices.Equal(a.Decision.PolicyIDs, []string{"ext.seen"}) {
					t.Errorf("from %s: denied by %v", from, a.Decision.PolicyIDs)
				}
			}
			if delete(args, "from"); row.Type == "exec_python" {
				args["inputs"] = map[string]string{"x": script.IntentID}
				w.Want(w.Do(task.Intent(row.Type, args)), intents.PolicyDenied)
			}
			if n := len(w.Bus.Calls(row.Type)); n > 1 || n == 1 && row.Type != "exec_python" {
				t.Errorf("%d effects", n)
			}
		})
	}
}

// An input that policies cannot see is a mark, and a rule that reads it denies the intent. Rules
// that do not read it are unaffected.
func TestPolicyCannotSeeInput(t *testing.T) {
	w, blobs, _ := withBlobs(t)
	w.Pin("send", catalog.Pure)
	task := w.Begun("p9", "send").Started(1)
	scope := storage.Scope{Tenant: "default", Plan: routertest.PlanID("p9"), Revision: 1, Step: 1}
	withPolicy(w, `package writ.ext.region

# METADATA
# title: Region
# description: Only eu.
# custom:
#   id: ext.region
deny contains {"id": "ext.region", "reason": "Only eu."} if {
	input.intent.args.skill == "send"
	input.intent.args.input.region == "us"
}
`)
	for name, c := range map[string]struct {
		data string
		code intents.Code
		rule string
	}{
		"small":          {`{"region":"eu"}`, intents.OK, ""},
		"small, denied":  {`{"region":"us"}`, intents.PolicyDenied, "ext.region"},
		"text":           {"us", intents.OK, ""},
		"large":          {fmt.Sprintf(`{"region":"us","pad":%q}`, strings.Repeat("x", policies.MaxInputSize)), intents.PolicyDenied, policies.IDInput},
		"read two ways":  {`{"region":"us","region":"eu"}`, intents.PolicyDenied, policies.IDInput},
		"not even text":  {"\xff\xfe", intents.PolicyDenied, policies.IDInput},
		"nothing of it ": {`[]`, intents.OK, ""},
	} {
		file, err := blobs.Put(t.Context(), scope, strings.NewReader(c.data))
		w.Must(err)
		a := w.Want(w.Do(task.Intent("skill.call", catalog.SkillCall{Skill: "send", From: file.ID})), c.code)
		if c.rule != "" && !slices.Equal(a.Decision.PolicyIDs, []string{c.rule}) {
			t.Errorf("%s: by %v", name, a.Decision.PolicyIDs)
		}
		w.Want(w.Do(task.Intent("write_memory", map[string]any{"label": "a", "from": file.ID})), intents.OK)
	}
	// An input that does not exist yet, since its intent is of the same batch.
	for typ, code := range map[string]intents.Code{"skill.call": intents.PolicyDenied, "exec_python": intents.OK} {
		script := w.Sign(task.Intent("exec_python", catalog.ExecPython{Script: "print('" + typ + "')"}))
		u, err := intents.Parse(script)
		w.Must(err)
		args := map[string]any{"from": u.ID()}
		if typ == "skill.call" {
			args["skill"] = "send"
		} else {
			args["script"] = "print(2)"
		}
		call := w.Sign(task.Intent(typ, args))
		if b := w.Router.SubmitBatch(t.Context(), fmt.Appendf(nil, `{"atomic":true,"intents":[%s,%s]}`, script, call), 0); b.Code != code {
			t.Errorf("in a batch, %s: %+v", typ, b)
		}
	}
}
