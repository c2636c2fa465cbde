package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/failpoint"
)

// noticeDeaths are those of TestNoticeKills, and streamDeaths those of TestAuditStream.
var (
	noticeDeaths = []death{{point: failpoint.NoticeSent, n: 1}, {point: failpoint.NoticeSent, n: 2}, {point: failpoint.NoticeSent, n: 2}}
	streamDeaths = []death{{point: failpoint.StreamSent, n: 1}, {point: failpoint.StreamSent, n: 3}}
)

// chat is an incoming webhook of Slack.
type chat struct {
	url   string
	got   chan struct{} // one for each message
	mu    sync.Mutex    // guards texts
	texts []string
}

func serveChat(t *testing.T) *chat {
	t.Helper()
	c := &chat{got: make(chan struct{}, 100)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			Text string `json:"text"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.texts = append(c.texts, m.Text)
		c.got <- struct{}{}
	}))
	t.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

var noticeLink = regexp.MustCompile(`<https://writ\.example/console/approvals/([^>]+)>$`)

// told counts messages by the intent that they link to.
func (c *chat) told(t *testing.T) map[string]int {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for _, text := range c.texts {
		m := noticeLink.FindStringSubmatch(text)
		if m == nil || !strings.HasPrefix(text, "Waits for your approval: Call skills-1.parcel_send\nAsked by local, tenant default. It ends at ") || strings.Contains(text, "parcel\":") {
			t.Fatalf("a notice says %q", text)
		}
		out[m[1]]++
	}
	return out
}

// TestNoticeKills: a person is told in Slack of each approval that waits for them, with a sentence
// and a link. A kill between a notice and its record tells it once more, and never not at all.
func TestNoticeKills(t *testing.T) {
	t.Parallel()
	exe := mortal(t)
	l := newLoad(t, exe, beginLog(t, exe), death{point: failpoint.NoticeSent, held: true})
	ops, others := serveChat(t), serveChat(t)
	file := filepath.Join(t.TempDir(), "writ.yaml")
	text := fmt.Sprintf("public_url: https://writ.example\nnotices:\n- {name: ops, kind: slack, url: %q, roles: [approver]}\n- {name: others, kind: slack, url: %q, users: [cleo]}\n", ops.url, others.url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l.args = append(l.args, "--config", file)
	for i, d := range noticeDeaths {
		if !l.launch(fmt.Sprintf("%s=%s:%d", failpoint.Variable, d.point, d.n)) {
			continue // it died of what was told again
		}
		if i == 0 {
			l.approver = l.addPerson("default", "ben", "user", "approver")
			for user, roles := range map[string][]string{"ben": {"user", "approver"}, "cleo": {"user"}} {
				l.operate("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: user, Roles: roles}})
			}
			l.holdBack("parcel_send")
		}
		l.askPlan(t.Context())
		select {
		case <-l.ended:
		case <-time.After(patience):
			t.Fatal("nobody is told")
		}
		l.cmd = nil
	}
	if !l.launch("none=") {
		t.Fatal("it does not start")
	}
	for range 2 * len(noticeDeaths) {
		select {
		case <-ops.got:
		case <-time.After(patience):
			t.Fatalf("told %v", ops.told(t))
		}
	}
	if counts := slices.Collect(maps.Values(ops.told(t))); !slices.Equal(counts, []int{2, 2, 2}) {
		t.Errorf("told %v", counts)
	}
	l.approve(t.Context())
	l.end(syscall.SIGTERM)
	if n := len(others.told(t)); n != 0 {
		t.Errorf("somebody is told of %d approvals that others may give", n)
	}
	l.survive()
}
