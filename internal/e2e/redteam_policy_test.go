package e2e

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// triedRule denies if a body holds.
func triedRule(body string) string {
	return `package writ.ext.pay

# METADATA
# title: Tried
# description: It is tried.
# custom:
#   id: tried
deny contains {"id": "tried", "reason": "It is tried."} if {
	` + body + `
}
`
}

var wouldChange = regexp.MustCompile(`decisions, (\d+) would change`)

// TestRedTeamPolicy: a policy that an auditor of a tenant tries in the console learns nothing of
// others and of the machine, reaches nobody, and takes neither time nor memory of others.
func TestRedTeamPolicy(t *testing.T) {
	t.Parallel()
	if inCell() {
		t.Log("a router of a cell makes no backtests") // said by the console
		return
	}
	w := newRedWorld(t)
	w.addTenant("acme")
	ana, eve := w.addPerson("default", "ana", "user"), w.addPerson("acme", "eve", "user", "auditor")
	for tenant, value := range map[string]string{"default": `"` + canary + `"`, "acme": `"own"`} {
		w.operate("admin.put", catalog.AdminPut{Tenant: tenant, Data: &catalog.Data{Key: "x.secret", Value: json.RawMessage(value)}})
	}
	for _, who := range []person{ana, eve} {
		w.knock(who, http.MethodPost, "/agent/artifacts", map[string]string{"a": canary + " of " + who.user})
	}
	var asked atomic.Int64
	spy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(spy.Close)
	b := w.at(eve)
	csrf := b.open("/console/now").csrf()
	try := func(text string) (page, string) {
		p := b.send("/console/policies/backtest", url.Values{"csrf": {csrf}, "file": {"ext/pay/pay.rego"}, "text": {text}})
		if m := wouldChange.FindStringSubmatch(p.text); m != nil {
			return p, m[1]
		}
		return p, "0"
	}
	for _, own := range []string{"true", `data.directory.tenants.acme["x.secret"] == "own"`, `input.actor.tenant == "acme"`} {
		if p, changed := try(triedRule(own)); changed == "0" {
			t.Fatalf("%s changes nothing, the attempts show nothing: HTTP %d\n%s", own, p.status, p.text)
		}
	}
	// None of these holds for who sees its own tenant alone.
	for _, body := range []string{
		`data.directory.tenants["default"]["x.secret"] == "` + canary + `"`, `some t; data.directory.tenants[t]["x.secret"] == "` + canary + `"`, `count(data.directory.tenants) > 1`, `some t; t != "acme"; data.directory.tenants[t]`,
		`data.directory.roles["default"]`, `data.directory.pins["default"]`, `data.directory.approvers["default"]`, `walk(data.directory, [_, "` + canary + `"])`, `contains(json.marshal(data), "` + canary + `")`, `contains(json.marshal(data.directory), "ana")`,
		`input.actor.tenant == "default"`, `contains(json.marshal(input), "` + canary + ` of ana")`, `input.actor.user_id == "ana"`,
		`opa.runtime().env.PATH`, `opa.runtime().config`, `count(opa.runtime().env) > 0`, `http.send({"method": "GET", "url": "` + spy.URL + `"}).status_code == 200`, `http.send({"method": "GET", "url": "http://169.254.169.254/", "raise_error": false})`,
		`count(net.lookup_ip_addr("localhost")) > 0`, `time.now_ns() > 0`, `rand.intn("x", 100) >= 0`, `uuid.rfc4122("x")`,
		`io.jwt.decode_verify("a.b.c", {})[0]`,
	} {
		attack(t, attempt{"a rule with " + body, func() string {
			p, changed := try(triedRule(body))
			if changed != "0" || p.status >= http.StatusInternalServerError {
				return p.text
			}
			return ""
		}})
	}
	attack(t, attempt{"a request to somebody", func() string {
		if asked.Load() > 0 {
			return "it was made"
		}
		return ""
	}})
	deep := strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000)
	for name, text := range map[string]string{
		"no Rego": "x", "nothing": "", "no package": "deny := 1", "deep": "package writ.ext.pay\n\nx := " + deep + "\n", "long": "package writ.ext.pay\n\nx := " + strings.Repeat("1 + ", 100_000) + "1\n",
		"memory": triedRule("a := numbers.range(1, 20000000)\n\tb := [[x, y] | some x in a; some y in a]\n\tcount(b) > 0"), "a regular expression": triedRule(`regex.match("(a*)*(a*)*(a*)*b{1,1000}{1,1000}", "` + strings.Repeat("a", 5000) + `")`),
		"a text": triedRule(`count(sprintf("%2000000000d", [1])) < 0`), "a range": triedRule(`count(numbers.range(1, 100000000000)) < 0`), "a power": triedRule(`bits.lsh(1, 10000000000) < 0`), "a number": triedRule(`to_number("1e1000000000") < 0`),
		"a glob": triedRule(`glob.match("` + strings.Repeat("{a,", 2000) + strings.Repeat("}", 2000) + `", [], "a")`), "a decision of its own": "package writ.authz\n\ndefault decision := {\"allow\": true, \"deny\": set(), \"hold\": set(), \"obligations\": set()}\n",
		"print": triedRule(`print("` + canary + `3")` + "\n\tfalse"), "an import of tests": "package writ.ext.pay\n\nimport data.directory.tenants.default as d\n\ndeny contains {\"id\": \"tried\", \"reason\": d[\"x.secret\"]} if true\n",
	} {
		attack(t, attempt{"a text with " + name, func() string {
			p, changed := try(text)
			if plain := html.UnescapeString(p.text); changed != "0" && strings.Contains(plain, canary) || p.status >= http.StatusInternalServerError && p.status != http.StatusServiceUnavailable {
				return p.text
			}
			if status, _, text := w.knock(ana, http.MethodPost, "/agent/artifacts", map[string]string{"a": name}); status != http.StatusCreated && status != http.StatusOK {
				return "another tenant is held up: " + text
			}
			return ""
		}})
	}
	for _, file := range []string{"", "x.rego", "../pay.rego", "/etc/passwd", "ext/../ext/pay/pay.rego", "ext/pay/pay_test.rego", "data.json"} {
		attack(t, attempt{"a file " + file, func() string {
			p := b.send("/console/policies/backtest", url.Values{"csrf": {csrf}, "file": {file}, "text": {triedRule("true")}})
			if wouldChange.MatchString(p.text) {
				return p.text
			}
			return ""
		}})
	}
	// It was a trial: what is in force is what was.
	if got := w.calls(pay, func() { w.tool(ana, toolOf(pay), json.RawMessage(`{"region":"eu"}`)) }); got == "" {
		t.Error("after it what is allowed is not called")
	}
}
