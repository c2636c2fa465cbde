package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/failpoint"
)

// eraseDeaths are the ways to die of a node that erases a user. Passes count once the erasure is
// submitted.
var eraseDeaths = []death{
	{point: failpoint.ErasureAccepted, n: 1},
	{point: failpoint.ErasureBlobs, n: 1},
	{point: failpoint.KeysErasing, n: 1},
	{point: failpoint.KeysErased, n: 1},
	{point: failpoint.ErasureDone, n: 1},
	{point: failpoint.RecorderPurged, n: 1},
	{point: failpoint.RecorderPurged, n: 10}, // the last one: nothing is scrubbed, and the user's key is there
}

// TestUserEraseKills kills writ while it erases a user. The next start completes the erasure by itself:
// no file has a word of the user, another user's words stay, and every reader finds the directory sound.
func TestUserEraseKills(t *testing.T) {
	t.Parallel()
	exe := mortal(t)
	d := serveDepot(t, nil)
	modelURL := serveModel(t, porter("parcel_send"))
	on := func(t *testing.T, dir string) *load {
		t.Helper()
		x := &machine{system: &system{t: t, dir: dir, setup: setup{Now: time.Now}}, exe: exe, args: []string{
			"up", "--data", dir, "--listen", "127.0.0.1:0", "--skills", trusted([]string{d.skills})[0], "--model", "openai:mock", "--model-url", modelURL, "--rate-limit", "0",
		}}
		t.Cleanup(func() {
			if x.cmd != nil {
				x.end(syscall.SIGKILL)
			}
			if t.Failed() {
				t.Logf("the last writ said:\n%s", x.stderr.Bytes())
			}
		})
		return &load{machine: x, mark: filepath.Join(t.TempDir(), "mark")}
	}
	begun := filepath.Join(t.TempDir(), "begun")
	l := on(t, begun)
	l.start()
	l.holds("parcel_send")
	ana := l.addPerson("default", "ana", "user")
	ana.session = "talk"
	var w words
	l.plant(ana, &w)
	bella := l.addPerson("default", "bella", "user")
	var kept catalog.ArtifactPutResult
	if status, p := l.call(bella, http.MethodPost, "/agent/artifacts", "bellasword", &kept); status >= http.StatusBadRequest {
		t.Fatalf("HTTP %d %+v", status, p)
	}
	l.operate("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ana", Roles: []string{"user"}, Disabled: true}})
	l.end(syscall.SIGTERM)
	for _, d := range eraseDeaths {
		t.Run(fmt.Sprintf("%s:%d", d.point, d.n), func(t *testing.T) {
			t.Parallel()
			l := on(t, filepath.Join(t.TempDir(), "data"))
			if out, err := exec.CommandContext(t.Context(), "cp", "-a", begun, l.dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			l.eraseUntilDead("ana", fmt.Sprintf("%s:%d", d.point, d.n))
			if d.point == failpoint.RecorderPurged && d.n == 1 && len(wordsIn(t, l.dir)) == 0 { // the recorder overtakes a router that dies
				t.Error("all was gone before it died")
			}
			l.start()
			if left := l.wordless(l.dir); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if said := planted.FindAll(l.stderr.Bytes(), -1); len(said) > 0 {
				t.Errorf("log: %s", said)
			}
			if status, p := l.call(bella, http.MethodGet, "/agent/artifacts/"+strings.TrimPrefix(kept.Artifact, "cas://"), nil, nil); status != http.StatusOK {
				t.Errorf("another user's artifact: HTTP %d %+v", status, p)
			}
			l.end(syscall.SIGTERM)
			if found := wordsIn(t, l.dir); len(found) > 0 {
				t.Errorf("left by the end: %v", found)
			}
			l.sound(context.WithoutCancel(t.Context()))
		})
	}
}

// eraseUntilDead has writ erase a disabled user, and die at a point.
func (l *load) eraseUntilDead(user, at string) {
	l.t.Helper()
	if !l.launch(failpoint.Variable + "=" + at) {
		l.t.Fatal("writ ended before it was up")
	}
	erase := catalog.UserErase{Tenant: "default", UserID: user, Reason: "request 17"}
	origin := l.origin()
	if err := os.WriteFile(l.mark, nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
	resp, err := http.Post(l.url+"/v1/intents", "application/json", strings.NewReader(string(l.byOperator(origin, "user.erase", erase))))
	if err == nil { // else it died before it answered
		_ = resp.Body.Close()
		if resp.StatusCode >= http.StatusBadRequest {
			l.t.Fatalf("user.erase: %s", resp.Status)
		}
	}
	select {
	case <-l.ended:
	case <-time.After(patience):
		l.t.Fatalf("writ does not come to %s", at)
	}
	if status, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		l.t.Fatalf("writ did not die at %s: %v", at, l.cmd.ProcessState)
	}
	l.cmd = nil
}
