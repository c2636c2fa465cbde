//go:build linux && (amd64 || arm64)

package sandbox

import (
	"strings"
	"testing"
)

// TestStandardInputIsOwn: what one sandbox sets on its standard input none after it
// can read.
func TestStandardInputIsOwn(t *testing.T) {
	const script = "import fcntl, os\nprint(fcntl.fcntl(0, fcntl.F_GETFL) & os.O_NONBLOCK)\nfcntl.fcntl(0, fcntl.F_SETFL, os.O_NONBLOCK)\nprint(os.read(0, 1))"
	for _, name := range available(t) {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{Driver: name, Workers: -1})
			for range 2 {
				if res := run(t, s, Job{Script: script}); string(res.Output) != "0\nb''\n" {
					t.Errorf("%s %s %q", res.Outcome, res.Error, res.Output)
				}
			}
		})
	}
}

// TestLocksForDatabases: what the library does with locks on files of its own
// goes on, although none takes effect.
func TestLocksForDatabases(t *testing.T) {
	const script = `
import fcntl, sqlite3, tempfile, threading, time
if s := tempfile.gettempdir():
    with tempfile.NamedTemporaryFile() as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        fcntl.lockf(f, fcntl.LOCK_EX)
for _ in range(2):
    db = sqlite3.connect("own.db")
    db.execute("create table if not exists t(n)")
    with db:
        db.executemany("insert into t values (?)", [(n,) for n in range(100)])
    print(db.execute("select count(*) from t").fetchone()[0])
    db.close()
threads = [threading.Thread(target=time.sleep, args=(0.001,)) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(time.thread_time() > 0, time.clock_gettime(time.CLOCK_BOOTTIME) > 0)
`
	for _, name := range available(t) {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, Landlock) {
				t.Log("scripts create no files under this driver")
				return
			}
			res := run(t, open(t, Config{Driver: name, Workers: -1}), Job{Script: script})
			if want := "100\n200\nTrue True\n"; res.Outcome != OK || string(res.Output) != want {
				t.Errorf("%s %s %q", res.Outcome, res.Error, res.Output)
			}
		})
	}
}
