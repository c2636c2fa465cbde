package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/internal/visible"
)

// hostileText steers a terminal, turns lines around, hides and is a page of its own.
const hostileText = "\x1b[2J\x1b]0;t\x07\u202eABC\u2066\u200b\u2800\u00ad\u009b\u2028<script>alert(1)</script><img src=x onerror=alert(1)>\"'` Zz"

// steers returns the parts of a text that act where it is shown.
func steers(text string) string {
	for _, r := range hostileText {
		if (visible.Hidden(r) || r < ' ' || r >= 0x7f && r < 0xa0) && strings.ContainsRune(text, r) {
			i := strings.IndexRune(text, r)
			return "it has a hidden character: " + text[max(0, i-80):min(len(text), i+80)]
		}
	}
	return ""
}

// TestRedTeamShown: what people, models and servers have written acts neither in a terminal nor in
// a browser, wherever writ shows it.
func TestRedTeamShown(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	look := skill{name: "look", about: hostileText, input: `{"type":"object","description":` + marshalled(hostileText) + `,"properties":{"note":{"type":"string","description":` + marshalled(hostileText) + `}}}`, hints: &mcp.ToolAnnotation{Title: hostileText, ReadOnlyHint: &yes, DestructiveHint: &no}, do: always(map[string]string{"note": hostileText, hostileText: "a"})}
	burn := look
	burn.name, burn.hints = "burn", &mcp.ToolAnnotation{DestructiveHint: &yes}
	s := start(t, setup{Limits: node.Limits{Requests: -1}, Model: newPuppet(), Agents: registryDir(t, map[string]string{"workflows/quick.yaml": quick}), Skills: []string{"trust=true name=evil -- " + serveSkills(t, look, burn).url}})
	ana, ben := s.addPerson("default", "ana", "user", "auditor", "admin"), s.addApprover("default", "ben")
	input := marshalled(map[string]string{"note": hostileText})
	var turn struct {
		PlanID string `json:"plan_id"`
	}
	s.call(ana, http.MethodPost, "/agent/run", map[string]string{"agent": "general", "message": hostileText + " CALL evil.look " + input + " NOW"}, &turn)
	var held heldTurn
	s.call(ana, http.MethodPost, "/agent/run", map[string]string{"agent": "general", "message": hostileText + " CALL evil.burn " + input + " NOW"}, &held)
	s.knock(ana, http.MethodPost, "/agent/kb/documents", map[string]string{"title": hostileText, "media_type": "text/plain", "text": hostileText, "scope": "user"})
	s.knock(ana, http.MethodPost, "/agent/schedules", catalog.SchedulePut{Agent: "general", Input: hostileText, Cron: "0 8 1 1 *"})
	run := s.startRun(ana, "quick", nil)
	s.rest(ana, run)
	if held.Approval.IntentID == "" || turn.PlanID == "" {
		t.Fatalf("%+v %+v", turn, held)
	}
	rejected := held.Approval.IntentID
	if _, p := s.decide(ben, rejected, catalog.DecisionReject, hostileText); p.Code != "" {
		t.Fatalf("%+v", p)
	}
	s.call(ana, http.MethodPost, "/agent/run", map[string]string{"agent": "general", "message": hostileText + " CALL evil.burn " + input + " NOW"}, &held)
	waiting := held.Approval.IntentID
	shown := 0
	see := func(name, text string) {
		if strings.Contains(text, "Zz") {
			shown++
		}
		attack(t, attempt{name, func() string { return steers(text) }})
	}
	for _, id := range []string{turn.PlanID, held.PlanID} {
		for _, args := range [][]string{{"plan", "show", id}, {"plan", "watch", id}, {"trace", id}, {"plan", "logs", id}} {
			out, _ := s.typed(ana, nil, append(args, "--url", s.url)...)
			see("writ "+args[0]+" "+args[1], string(out))
		}
	}
	for _, args := range [][]string{{"plan", "list"}, {"approvals", "list"}, {"approvals", "show", waiting}, {"approvals", "show", rejected}, {"kb", "list"}, {"kb", "search", "ABC"}, {"workflow", "list"}, {"workflow", "show", run}, {"query", "ABC"}, {"query", "--mode", "SQL", "SELECT * FROM messages"}, {"run", hostileText}} {
		out, _ := s.typed(ana, nil, append(args, "--url", s.url)...)
		see("writ "+strings.Join(args[:2], " "), string(out))
		out, _ = s.typed(ana, nil, append(args, "--json", "--url", s.url)...)
		see("writ "+strings.Join(args[:2], " ")+" --json", string(out))
	}
	for _, args := range [][]string{{"skill", "list"}, {"skill", "diff", "evil.look"}, {"audit", "search", "ABC"}, {"audit", "tail"}, {"audit", "show", waiting}, {"audit", "show", rejected}} {
		out, _ := s.typed(ana, nil, append(args, "--data", s.dir)...)
		see("writ "+strings.Join(args, " "), string(out))
	}
	for _, args := range [][]string{{hostileText}, {"plan", hostileText}, {"plan", "show", hostileText, "--url", s.url}, {"approvals", "show", hostileText, "--url", s.url}, {"registry", "check", hostileText}, {"intent", "verify", hostileText}, {"plan", "list", "--url", s.url, "--" + hostileText}} {
		out, _ := s.typed(ana, nil, args...)
		see("writ, a message about "+args[0][:min(4, len(args[0]))], string(out))
	}
	if shown < 10 {
		t.Errorf("only %d texts of the command line show it: the attempts show little", shown)
	}
	s.pages(ana, []string{"now", "plans", "plans/" + turn.PlanID, "plans/" + held.PlanID, "approvals", "approvals/" + waiting, "approvals/" + rejected, "intents/" + waiting, "intents/" + rejected, "agents", "skills/evil.look", "skills/evil.burn", "record", "record?q=ABC", "policies", "policies/explain/" + waiting, "health", "plans/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "nothing%3Cscript%3Ealert(1)", "plans?q=%3Cscript%3Ealert(1)%3C%2Fscript%3E", "login?next=javascript:alert(1)"})
}

// pages of the console show a hostile text and do not obey it.
func (s *system) pages(who person, paths []string) {
	s.t.Helper()
	b, shown := s.at(who), 0
	for _, path := range paths {
		p := b.open("/console/" + path)
		if strings.Contains(p.text, "Zz") {
			shown++
		}
		attack(
			s.t,
			attempt{"the page " + path, func() string {
				for _, acts := range []string{"<script>alert", "<img src=x", `href="javascript:`} {
					if strings.Contains(p.text, acts) {
						return "it has " + acts
					}
				}
				return steers(p.text)
			}},
			attempt{"scripts of the page " + path, func() string {
				if csp := p.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src") && !strings.Contains(csp, "script-src") || strings.Contains(csp, "unsafe-inline") {
					return "its policy is " + csp
				}
				return ""
			}},
		)
	}
	if shown < 6 {
		s.t.Errorf("only %d pages show it: the attempts show little", shown)
	}
}

// TestRedTeamTwice: an approval counts once, for the version shown, as long as that is available.
func TestRedTeamTwice(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	ana, ben, cleo := w.addPerson("default", "ana", "user"), w.addApprover("default", "ben"), w.addApprover("default", "cleo")
	run, id := w.dropped(ana)
	if got := w.calls(dropAll, func() { w.decide(ben, id, catalog.DecisionApprove, ""); w.toEnd(ana, run) }); !strings.HasPrefix(got, "1 ") {
		t.Fatalf("what is approved is called %q: the attempts show nothing", got)
	}
	yes := map[string]string{"decision": catalog.DecisionApprove}
	for name, who := range map[string]person{"by the same": ben, "by another": cleo, "by who asked": ana} {
		attack(t, attempt{"a second time " + name, func() string {
			return w.calls(dropAll, func() { w.knock(who, http.MethodPost, "/agent/approvals/"+id, yes); w.rest(ana, run) })
		}})
	}
	run, id = w.dropped(ana)
	attack(t, attempt{"ten at once", func() string {
		got := w.calls(dropAll, func() {
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() { w.knock([]person{ben, cleo}[i%2], http.MethodPost, "/agent/approvals/"+id, yes) })
			}
			all.Wait()
			w.toEnd(ana, run)
		})
		if !strings.HasPrefix(got, "1 ") {
			return got + " where one was approved"
		}
		return ""
	}})
	run, id = w.dropped(ana)
	attack(t, attempt{"yes and no at once", func() string {
		got := w.calls(dropAll, func() {
			w.decide(cleo, id, catalog.DecisionReject, "no")
			w.knock(ben, http.MethodPost, "/agent/approvals/"+id, yes)
			w.toEnd(ana, run)
		})
		return got
	}})
	run, id = w.dropped(ana)
	attack(t, attempt{"after its run was cancelled", func() string {
		return w.calls(dropAll, func() {
			w.call(ana, http.MethodDelete, "/v1/runs/"+run, nil, nil)
			w.knock(ben, http.MethodPost, "/agent/approvals/"+id, yes)
			w.rest(ana, run)
		})
	}})
	run, id = w.dropped(ana)
	attack(t, attempt{"after its skill was changed", func() string {
		return w.calls(dropAll, func() {
			w.approve(dropAll, func(p *catalog.SkillApprove) { p.Digest = "sha256:" + strings.Repeat("0", 64) })
			w.knock(ben, http.MethodPost, "/agent/approvals/"+id, yes)
			w.rest(ana, run)
		})
	}})
}
