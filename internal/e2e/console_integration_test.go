//go:build integration

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TestIntegrationConsole: in Chromium, axe-core has nothing to say against any page of the
// console, light or dark; what people do there they can do with keys alone; receipts and proofs
// verify in the browser; no page breaks its own content policy.
// WRIT_CONSOLE_PICTURES names a directory that gets a picture of each page.
func TestIntegrationConsole(t *testing.T) {
	t.Parallel()
	shop := serveShop(t)
	l := serveLab(t, nil)
	s := start(t, setup{Skills: []string{shop.url, l.skills}, Agents: registryDir(t, map[string]string{"workflows/branches.yaml": branches})})
	boss := s.addPerson("default", "boss", "user", "auditor", "approver", "admin")
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "boss", Roles: []string{"user", "auditor", "approver", "admin"}}})
	done := s.ask(boss, openInBerlin)

	// Somebody else's intent is pending approval, and an earlier version of the skill is the
	// approved one.
	ben, _, una := s.holds(`outlet_list","lab.notify`)
	held := s.hold(s.as("ana"), openInBerlin)
	run, waiting := s.ranBranches(boss, ben), s.startRun(boss, "branches", map[string]any{"first": 3})
	s.runUntil(boss, waiting, "it waits", waits("thank"))
	changed := s.pinAnother("order_list")
	_, refused := s.call(una, http.MethodPost, "/v1/skills", catalog.SkillApprove{Skill: changed, Digest: intents.Digest(nil), Effect: catalog.Pure}, nil)

	given, err := json.Marshal(map[string]string{
		"url": s.url, "key": boss.key, "plan": done.PlanID, "held": held.Approval.IntentID, "skill": changed, "refused": refused.IntentID, "run": run, "waiting": waiting, "pictures": os.Getenv("WRIT_CONSOLE_PICTURES"),
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", copied(t, "console.mjs"), string(given))
	cmd.Stderr = t.Output()
	raw, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Violations, Errors                      []string
		Pages, Many                             int
		Approved, Manifest, Verified, Cancelled string
		Stopped, Alone, Warned, Typed           string
		Chain                                   []string
		Live, Diff, Tree, Phone                 bool
		Cookie                                  []any
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	for _, v := range append(got.Violations, got.Errors...) {
		t.Error(v)
	}
	if got.Pages < 19 || got.Many != 8 || !got.Live || !got.Phone || !got.Diff || !got.Tree || !strings.Contains(got.Approved, "You said approve") || !strings.Contains(got.Manifest, "You approved") ||
		!strings.HasSuffix(got.Verified, " hold, 0 do not.") || strings.HasPrefix(got.Verified, "0 ") {
		t.Errorf("%s", raw)
	}
	if chain := strings.Join(got.Chain, ", "); chain != "Asked by, Signed by, Rule, Decided by, Carried out by, Proof" {
		t.Errorf("the chain of an intent: %s", chain)
	}
	if got.Cancelled != "You cancelled the plan." {
		t.Errorf("a plan is cancelled: %s", got.Cancelled)
	}
	if !strings.Contains(got.Stopped, "You stopped agent sample-agent") || !strings.Contains(got.Alone, "a second person must") {
		t.Errorf("the stop: %q, %q", got.Stopped, got.Alone)
	}
	if !strings.Contains(got.Warned, "Your session ends in 5 minutes. Keep it") || got.Typed != "typed" {
		t.Errorf("the end of the session: %q, typed %q", got.Warned, got.Typed)
	}
	if len(got.Cookie) != 2 || got.Cookie[0] != "" || got.Cookie[1] != float64(http.StatusUnauthorized) {
		t.Errorf("the cookie: %v", got.Cookie)
	}
}
