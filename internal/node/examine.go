package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/router"
)

// Finding answers one question about a machine and a configuration.
type Finding struct {
	Check string `json:"check"` // data, blobs, keys, clock, executors, log, running, sandbox, driver:<name>, skills:<server>, policy, proof, directory
	OK    bool   `json:"ok"`    // nothing keeps writ from running
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what would help
}

// Examine finds what would keep a node of this configuration from running, and
// proves that a forbidden order would be refused. It changes nothing but what a
// start prepares beforehand, the runtime of the sandbox, and may run beside a
// node that uses the data directory.
func Examine(ctx context.Context, cfg Config) []Finding {
	list := []Finding{examineData(cfg), examineBlobs(ctx, cfg), examineKeys(cfg), examineClock(cfg)}
	list = append(list, examineLog(ctx, cfg)...)
	list = append(list, examineRunning(cfg)...)
	list = append(list, examineSandbox(ctx, cfg)...)
	list = append(list, examineSkills(ctx, cfg)...)
	list = append(list, examinePolicy(ctx, cfg)...)
	return append(list, examineDirectory(ctx, cfg)...)
}

func found(check, text string) Finding { return Finding{Check: check, OK: true, Found: text} }

func wrong(check string, err error, do string) Finding {
	return Finding{Check: check, Found: err.Error(), Do: do}
}

// examineData: the directory can be made or written to by us and by nobody else,
// and has room.
func examineData(cfg Config) Finding {
	const check = "data"
	at := cfg.Dir
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		for err != nil { // what it would be made in
			parent := filepath.Dir(at)
			if parent == at {
				break
			}
			at = parent
			_, err = os.Stat(at)
		}
	case err == nil && !info.IsDir():
		return wrong(check, fmt.Errorf("%s is not a directory", cfg.Dir), "name another with --data")
	case err == nil && info.Mode().Perm()&0o022 != 0:
		return wrong(check, fmt.Errorf("%s has mode %04o: others may write to it", cfg.Dir, info.Mode().Perm()), "chmod go-w "+cfg.Dir)
	}
	if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
		return wrong(check, fmt.Errorf("cannot write to %s: %w", at, err), "give it to this user, or name another with --data")
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(at, &disk); err != nil {
		return wrong(check, fmt.Errorf("%s: %w", at, err), "")
	}
	free := int64(disk.Bavail) * int64(disk.Bsize) //nolint:gosec,unconvert // G115: within range; the types differ between systems
	if free < cfg.Limits.FreeFloor {
		return wrong(check, fmt.Errorf("%d MiB are free below %s, fewer than the %d MiB below which no order is taken", free>>20, at, cfg.Limits.FreeFloor>>20),
			"make room, or lower free_disk_mb")
	}
	if at != cfg.Dir {
		return found(check, cfg.Dir+" will be made at the first start")
	}
	return found(check, fmt.Sprintf("%s, %d MiB free", at, free>>20))
}

// examineBlobs: the place of blobs is the one that the directory remembers, and a
// server that keeps them answers.
func examineBlobs(ctx context.Context, cfg Config) Finding {
	const check = "blobs"
	at, err := cfg.Blobs.of(cfg.Dir)
	if err != nil {
		return wrong(check, err, "see docs/storage.md")
	}
	if at.local() {
		return found(check, "in the data directory")
	}
	if err := at.look(ctx); err != nil {
		return wrong(check, err, "name another place with blobs, or look at that server and at blobs_credentials")
	}
	return found(check, at.URL+" answers")
}

// examineKeys: all are there, readable and nobody else's. That the root key is
// there too is worth a word, not a refusal.
func examineKeys(cfg Config) Finding {
	const check = "keys"
	dir := keysDir(cfg.Dir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return found(check, "none yet: the first start makes them")
	}
	held, err := keydir.LoadAll(dir)
	if err != nil {
		return wrong(check, err, "restore the file with mode 0600; a key that is lost is replaced with writ keys rotate")
	}
	f := found(check, fmt.Sprintf("%d in %s", len(held), dir))
	for _, k := range held {
		if k.Role == intents.RoleRoot {
			f.Do = "take root.pem offline"
		}
	}
	return f
}

// examineClock: whether time has gone back behind what was written here. That
// keeps nothing from starting.
func examineClock(cfg Config) Finding {
	const check, leeway = "clock", 5 * time.Second
	now := cfg.Now()
	var newest time.Time
	_ = filepath.WalkDir(filepath.Join(cfg.Dir, "journal"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // no journal yet
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	if now.Add(leeway).Before(newest) {
		f := found(check, fmt.Sprintf("it is %s, but the journal was written at %s", now.UTC().Format(time.RFC3339), newest.UTC().Format(time.RFC3339)))
		f.Do = "set the clock, if it is wrong: orders would expire too late"
		return f
	}
	return found(check, now.UTC().Format(time.RFC3339))
}

// examineRunning: what a process that uses the directory says of itself.
func examineRunning(cfg Config) []Finding {
	const check = "running"
	if !inUse(cfg.Dir) {
		return nil
	}
	up, err := conditionsOf(cfg.Dir)
	if err != nil {
		return []Finding{wrong(check, err, "look at /readyz of the writ that runs")}
	}
	if len(up) == 0 {
		return []Finding{found(check, "a writ uses the directory, and takes orders as far as it knows")}
	}
	var list []Finding
	for _, c := range up {
		list = append(list, Finding{Check: check, OK: !c.Blocks, Found: c.Reason, Do: strings.ReplaceAll(c.Do, "DIR", cfg.Dir)})
	}
	return list
}

// examineSandbox: a driver holds that is strong enough. Those that do not hold
// are told with the reason.
func examineSandbox(ctx context.Context, cfg Config) []Finding {
	const check = "sandbox"
	s, err := sandbox.Survey(ctx, sandbox.Config{Dir: filepath.Join(cfg.Dir, "runtime"), Minimum: cfg.Driver, Workers: -1})
	if err != nil {
		return []Finding{wrong(check, err, "install CPython 3.9 or later, or build with -tags embedpython")}
	}
	f := found(check, fmt.Sprintf("driver %s, python %s; not covered: %s", s.Driver, s.Python, sandbox.Uncovered(s.Driver)))
	if s.Driver == "" {
		f = wrong(check, errors.New("no driver holds that is strong enough: scripts would not run"),
			"enable unprivileged user namespaces (sysctl user.max_user_namespaces) or Landlock (Linux 6.2, landlock in lsm=), or run as root")
	}
	list := []Finding{f}
	for _, name := range sandbox.DriverNames() {
		if err := s.Refused[name]; err != nil {
			list = append(list, found("driver:"+name, "does not hold here: "+strings.ReplaceAll(err.Error(), "\n", "; ")))
		} else {
			list = append(list, found("driver:"+name, "holds"))
		}
	}
	return list
}

// examinePolicy: the catalog and the policy load, and with them a forbidden order
// is refused, as a forged and an expired one are, and a good one passes.
func examinePolicy(ctx context.Context, cfg Config) []Finding {
	n := &Node{cfg: cfg}
	if err := n.openCatalog(ctx); err != nil {
		return []Finding{wrong("catalog", err, "mend the file, or leave --catalog out")}
	}
	if err := n.loadPolicy(ctx); err != nil {
		return []Finding{wrong("policy", err, "see writ policy check")}
	}
	list := []Finding{found("policy", "digest "+n.policy.Engine().Digest())}
	if err := router.Prove(ctx, n.policy.Engine(), cfg.Now); err != nil {
		return append(list, wrong("proof", err, "the policy must keep the rule writ.selfproof.forbidden and allow the user role to find skills"))
	}
	return append(list, found("proof", "a forbidden order is refused with POLICY_DENIED, a forged one with SIGNATURE_INVALID, an expired one with EXPIRED_TTL; a good one passes"))
}

// Healthy reports whether nothing is wrong.
func Healthy(list []Finding) bool {
	return !slices.ContainsFunc(list, func(f Finding) bool { return !f.OK })
}
