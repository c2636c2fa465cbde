package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/upkeep"
)

// planted words of a person, each a word of its own: anawordNNNNx.
var planted = regexp.MustCompile(`anaword[0-9]{4}x`)

// words counts the planted words.
type words int

func (w *words) next() string { *w++; return fmt.Sprintf("anaword%04dx", int(*w)) }

// some are n words.
func (w *words) some(n int) string {
	var list []string
	for range n {
		list = append(list, w.next())
	}
	return strings.Join(list, " ")
}

// wordsIn are the planted words in the files of a directory, by word, with what stands around them.
func wordsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // it was renamed
			return nil
		}
		for _, at := range planted.FindAllIndex(raw, -1) {
			found[string(raw[at[0]:at[1]])] = fmt.Sprintf("%s at %d: %q", path, at[0], raw[max(0, at[0]-60):min(len(raw), at[1]+20)])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// wordless waits until a directory has no planted word, and returns those that stay, by word.
func (x *machine) wordless(dir string) (left map[string]string) {
	x.t.Helper()
	soon, cancel := context.WithTimeout(x.t.Context(), patience)
	defer cancel()
	_ = clock.Every(soon, 50*time.Millisecond, func() bool { left = wordsIn(x.t, dir); return len(left) == 0 }) // left says so
	return left
}

// plant has a person say words: to the persona, to their knowledge, in an artifact, in refused calls
// and in a plan that waits for an approval.
func (x *machine) plant(who person, w *words) {
	x.t.Helper()
	for _, call := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPut, "/agent/souls/default", map[string]any{"user_id": who.user, "persona": map[string]string{"name": w.next(), "system_prompt": w.some(100)}}},
		{http.MethodPost, "/agent/kb/documents", map[string]any{"title": w.next(), "media_type": "text/plain", "data": base64.StdEncoding.EncodeToString([]byte(w.some(300))), "scope": "user"}},
		{http.MethodPost, "/agent/artifacts", w.some(50)},
	} {
		if status, p := x.call(who, call.method, call.path, call.body, nil); status >= http.StatusBadRequest {
			x.t.Fatalf("%s: HTTP %d %+v", call.path, status, p)
		}
	}
	for range 20 { // refused
		_, a, _ := x.sign(who, "skill.call", catalog.SkillCall{Skill: "nowhere", Input: json.RawMessage(`{"name":"` + w.some(5) + `"}`)})
		if a.Code == intents.OK {
			x.t.Fatalf("%+v", a)
		}
	}
	x.hold(who, "send the parcels "+w.some(400)) // what people are asked about has no word
}

// cli runs a command of writ.
func (x *machine) cli(args ...string) (stdout string, err error) {
	x.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		x.t.Fatal(err)
	}
	cmd := exec.CommandContext(x.t.Context(), exe)
	cmd.Args, cmd.Env = append([]string{"writ"}, args...), os.Environ()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}

// exported is a bundle of the whole log, that the checkpoint covers.
func (x *machine) exported(path string) []byte {
	x.t.Helper()
	x.await("the export of all", func() bool {
		_, err := x.cli("audit", "export", "--data", x.dir, "--out", path)
		if err != nil && !strings.Contains(err.Error(), "export again") {
			x.t.Log(err)
		}
		return err == nil
	})
	raw, err := os.ReadFile(path)
	if err != nil {
		x.t.Fatal(err)
	}
	return raw
}

// TestUserErase: a person has talked, remembered, added knowledge and a persona, was refused, and
// waits for an approval. One command erases the person. Then no file of the data directory, no log, no new bundle and no new backup has a word of
// theirs; the bundle from before still verifies,
// and the new one says what was erased.
func TestUserErase(t *testing.T) {
	d := serveDepot(t, nil)
	x := boot(t, porter("parcel_send"), d.skills)
	x.holds("parcel_send")
	ana := x.addPerson("default", "ana", "user")
	ana.session = "talk"
	var w words
	x.plant(ana, &w)
	bens := x.addPerson("default", "bella", "user")
	if status, p := x.call(bens, http.MethodPut, "/agent/souls/default", map[string]any{"user_id": "bella", "persona": map[string]string{"name": "bellasword", "system_prompt": "bellasword"}}, nil); status >= http.StatusBadRequest {
		t.Fatalf("HTTP %d %+v", status, p)
	}
	if found := wordsIn(t, x.dir); len(found) < 100 {
		t.Fatalf("the test looks in the wrong place: %d words", len(found))
	}
	elsewhere := t.TempDir()
	before := x.exported(filepath.Join(elsewhere, "before.jsonl"))
	if _, err := upkeep.MakeBackup(t.Context(), x.dir, filepath.Join(elsewhere, "backup-before"), false, time.Now()); err != nil {
		t.Fatal(err)
	}

	if _, err := x.cli("user", "erase", "nobody-here", "--reason", "asked", "--data", x.dir, "--url", x.url); err == nil || !strings.Contains(err.Error(), "no user") {
		t.Errorf("an unknown user: %v", err)
	}
	out, err := x.cli("user", "erase", "ana", "--reason", "request 17", "--data", x.dir, "--url", x.url, "--json")
	if err != nil {
		t.Fatal(err)
	}
	var report catalog.UserEraseResult
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Erased < 19 || report.Intents <= report.Erased || len(report.Remaining) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	var held int64
	for _, r := range report.Retained {
		if r.Why == catalog.RetainedHeld {
			held += r.Intents
		}
	}
	if held == 0 {
		t.Errorf("no held intent: %s", out)
	}
	x.end(syscall.SIGTERM)
	x.start()
	none := func(what, dir string) {
		t.Helper()
		if found := x.wordless(dir); len(found) > 0 {
			t.Errorf("%s: %v", what, found)
		}
	}
	none("data directory", x.dir)
	if log := planted.FindAll(x.stderr.Bytes(), -1); len(log) > 0 {
		t.Errorf("log: %s", log)
	}
	after := x.exported(filepath.Join(elsewhere, "after.jsonl"))
	if found := planted.FindAll(after, -1); len(found) > 0 {
		t.Errorf("bundle: %s", found)
	}
	if !slices.ContainsFunc(planted.FindAll(before, -1), func([]byte) bool { return true }) {
		t.Error("the bundle from before has no words")
	}
	x.verifiesBundles(t.Context(), map[string][]byte{"before": before, "after": after})
	if _, err := upkeep.MakeBackup(t.Context(), x.dir, filepath.Join(elsewhere, "backup-after"), false, time.Now()); err != nil {
		t.Fatal(err)
	}
	none("backup", filepath.Join(elsewhere, "backup-after"))
	if err := os.RemoveAll(filepath.Join(elsewhere, "backup-before", "blobs")); err != nil { // they are in the clear
		t.Fatal(err)
	}
	none("backup from before", filepath.Join(elsewhere, "backup-before"))
	if status, _ := x.call(ana, http.MethodGet, "/agent/plans", nil, nil); status < http.StatusBadRequest {
		t.Errorf("the user may still read: HTTP %d", status)
	}
}

// verifiesBundles verifies bundles of the log; the last ones have erased parts.
func (x *machine) verifiesBundles(ctx context.Context, bundles map[string][]byte) {
	x.t.Helper()
	for name, bundle := range bundles {
		r, err := x.verified(ctx, bundle)
		if err != nil || !r.OK {
			x.t.Errorf("%s: %v %v", name, err, r.FirstBad)
		}
		if gone := r.Withheld > 0; gone != (name == "after") {
			x.t.Errorf("%s: %d records are withheld", name, r.Withheld)
		}
	}
}

func (x *machine) verified(ctx context.Context, bundle []byte) (r audit.Report, err error) {
	err = errors.Join(func() error {
		a, err := datadir.OpenArchive(ctx, x.dir)
		if err != nil {
			return err
		}
		defer a.Close()
		trust := audit.NewTrust(a.Root)
		r, err = audit.Verify(ctx, bytes.NewReader(bundle), audit.Options{Trust: &trust})
		return err
	}())
	return r, err
}
