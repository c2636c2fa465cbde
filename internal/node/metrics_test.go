package node

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/telemetry"
)

// series are the names and labels at /metrics.
func series(t *testing.T, n *Node) []string {
	t.Helper()
	w := httptest.NewRecorder()
	telemetry.Handler(n.Figures()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	var out []string
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go_") {
			out = append(out, line[:strings.LastIndex(line, " ")])
		}
	}
	return out
}

// TestSeriesStayBounded: a hundred thousand intents, each of another user, of another type and with
// another id, make as many series as the first ones did. None has a name or an id of theirs.
func TestSeriesStayBounded(t *testing.T) {
	n := open(t, config(t.TempDir()))
	run(t, n)
	gateway, now := n.keys.Signer(intents.RoleGateway), time.Now()
	signed := func(i int) []byte { // far enough to have a type, and recorded
		user := fmt.Sprintf("series-user-%d", i)
		g := intents.Grant{Issuer: n.Origin(), Audience: n.Origin(), Subject: user, Tenant: "default", Roles: []string{"user"}, Session: "s", Turn: "t", IssuedAt: now.Unix(), Expires: now.Add(10 * time.Minute).Unix(), ID: user}
		token, err := intents.IssueGrant(gateway, g)
		must(t, err)
		raw, _, err := intents.Sign(gateway, intents.Body{
			Version: intents.Version, Intent: intents.Spec{Type: fmt.Sprintf("series.type%d", i), Args: json.RawMessage(`{}`)}, Actor: intents.Actor{UserID: user, Tenant: "default", Grant: token},
			Constraints: intents.Constraints{IssuedAt: intents.FormatTime(now), TTLSec: 60, Audience: n.Origin(), IdempotencyKey: user}, Context: &intents.Context{SessionID: "s", TurnID: "t"},
		})
		must(t, err)
		return raw
	}
	sent := map[intents.Code]int{}
	send := func(raw []byte) {
		a, err := n.router.Submit(t.Context(), raw)
		if err == nil {
			sent[a.Code]++
		} else {
			sent[intents.CodeOf(err)]++
		}
	}
	feed := func(from, to int) {
		for i := from; i < to; i++ {
			if i%1000 == 0 {
				send(signed(i))
				continue
			}
			send(fmt.Appendf(nil, `{"version":"1.0","actor":{"user_id":"series-user-%d"},"intent":{"type":"series.type%d"}}`, i, i))
		}
	}
	feed(0, 10)
	before := series(t, n)
	feed(10, 100_000)
	after := series(t, n)
	if !slices.Equal(before, after) {
		t.Errorf("%d series became %d", len(before), len(after))
	}
	if sent[intents.UnknownIntent] != 100 || sent[intents.SignatureInvalid] != 99_900 || len(before) < 50 {
		t.Errorf("sent %v, %d series: the test finds nothing", sent, len(before))
	}
	for _, s := range after {
		if strings.Contains(s, "series") {
			t.Errorf("%s", s)
		}
	}
	for _, want := range []string{
		`writ_intents_decided_total{code="UNKNOWN_INTENT",type="unknown"}`, `ps6_envelope_principal_mismatch_total{consumer="consumer-agent"}`, "writ_intents_open",
		`writ_stage_seconds_bucket{stage="policy",le="+Inf"}`, `writ_stage_seconds_count{stage="signature"}`,
	} {
		if !slices.Contains(after, want) {
			t.Errorf("no series %s", want)
		}
	}
}

// TestMetrics: what the parts count is told on a listener of its own, and on no other.
func TestMetrics(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Metrics = "127.0.0.1:0"
	n := open(t, cfg)
	run(t, n)
	if err := tenantPut(t.Context(), n, "acme"); err != nil {
		t.Fatal(err)
	}
	get := func(url string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(raw)
	}
	code, text := get("http://" + n.metered.Addr().String() + "/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, m := range n.metrics() {
		if m.Label != "condition" && m.Label != "code" && m.Label != "event" && m.Label != "agent_id" && !strings.Contains(text, "# TYPE "+m.Name+" ") {
			t.Errorf("no %s", m.Name)
		}
	}
	for _, line := range []string{
		`writ_held_plans\{state="open"\} 0`, `writ_intents_accepted_total [1-9]`, `writ_journal_records [1-9]`, `ps6_envelope_version_mismatch_total 0`,
		`ps6_envelope_principal_mismatch_total\{consumer="consumer-agent"\} 0`, `writ_intents_decided_total\{code="OK",type="[a-z.]+"\} [1-9]`, `writ_stage_seconds_count\{stage="policy"\} [1-9]`,
		`writ_stage_seconds_count\{stage="commit"\} [1-9]`, `writ_journal_commit_intents_count [1-9]`, `writ_journal_commit_seconds_count [1-9]`, `writ_holds\{half="second"\} 0`, `writ_intents_recovered 0`,
		`writ_scripts\{state="waiting"\} 0`, `go_goroutines [1-9]`, `process_resident_memory_bytes [1-9]`,
	} {
		if !regexp.MustCompile("(?m)^" + line).MatchString(text) {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	if code, _ := get("http://" + n.Addr().String() + "/metrics"); code == http.StatusOK {
		t.Error("metrics are told to everybody")
	}
}
