package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/failpoint"
)

// siem is a system that gets the record.
type siem struct {
	url  string
	t    *testing.T
	mu   sync.Mutex // guards the rest
	got  map[int64]audit.StreamRecord
	next int64
	down bool
	twos int // records that came again
}

func serveSIEM(t *testing.T) *siem {
	t.Helper()
	s := &siem{t: t, got: map[int64]audit.StreamRecord{}}
	srv := httptest.NewServer(http.HandlerFunc(s.take))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *siem) take(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(r.Body)
	mac := hmac.New(sha256.New, []byte("signed"))
	mac.Write([]byte(r.Header.Get("X-Writ-Timestamp") + "." + string(body)))
	var b audit.StreamBatch
	if err != nil || r.Header.Get("X-Writ-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)) || json.Unmarshal(body, &b) != nil {
		s.t.Errorf("a message that is not signed: %v %s", r.Header, body)
	}
	if b.From > s.next || b.Next != b.From+int64(len(b.Records)) {
		s.t.Errorf("records %d to %d come after %d", b.From, b.Next, s.next)
	}
	for _, x := range b.Records {
		if old, ok := s.got[x.Position]; ok {
			s.twos++
			if old.Digest != x.Digest {
				s.t.Errorf("record %d has two digests", x.Position)
			}
		}
		s.got[x.Position] = x
	}
	s.next = max(s.next, b.Next)
	if strings.Contains(string(body), "parcels") {
		s.t.Errorf("arguments are streamed: %s", body)
	}
}

func (s *siem) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *siem) reached() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// TestAuditStream: every record reaches another system, in order and with the digest that the log has,
// while that system is down for a while and writ is killed between sending and noting it.
func TestAuditStream(t *testing.T) {
	t.Parallel()
	exe, far := mortal(t), serveSIEM(t)
	file := filepath.Join(t.TempDir(), "writ.yaml")
	if err := os.WriteFile(file, []byte("audit_stream_secret: signed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLoad(t, exe, beginLog(t, exe), death{point: failpoint.StreamSent})
	l.args = append(l.args, "--audit-stream", far.url, "--config", file)
	for _, d := range streamDeaths {
		if l.launch(fmt.Sprintf("%s=%s:%d", failpoint.Variable, d.point, d.n)) {
			l.askPlan(t.Context())
			select {
			case <-l.ended:
			case <-time.After(patience):
				t.Fatal("nothing is streamed")
			}
		}
		l.cmd = nil
	}
	far.set(true)
	if !l.launch("none=") {
		t.Fatal("it does not start")
	}
	l.askPlan(t.Context())
	l.await("/readyz says so", func() bool { _, text := l.raw("/readyz", ""); return strings.Contains(text, "audit_stream") })
	far.set(false)
	l.askPlan(t.Context())
	l.await("it is mended", func() bool { _, text := l.raw("/readyz", ""); return !strings.Contains(text, "audit_stream") })
	l.end(syscall.SIGTERM)
	a, err := datadir.OpenArchive(t.Context(), l.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	types := map[string]int{}
	for view, err := range audit.Read(t.Context(), a.Records, 0) {
		if err != nil {
			t.Fatal(err)
		}
		x, ok := far.got[view.Position]
		switch {
		case !ok && view.Position < far.reached():
			t.Errorf("record %d has not come", view.Position)
		case ok && (x.Digest != view.Digest || x.IntentID != view.IntentID || x.User != view.User):
			t.Errorf("record %d came as %+v", view.Position, x)
		}
		types[x.Type]++
	}
	if types["skill.call"] < 3 || far.twos == 0 || far.reached() < 100 {
		t.Errorf("%v, again %d, up to %d", types, far.twos, far.reached())
	}
}
