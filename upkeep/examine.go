package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// Finding answers one question about a machine and a configuration.
type Finding struct {
	Check string `json:"check"` // data, files, documents, blobs, keys, clock, executors, log, running, sandbox, driver:<name>, skills:<server>, policy, proof, directory; model:<name>
	Level Level  `json:"level"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what would help
}

// Level of a finding.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // writ continues, without something
	Fail Level = "fail" // writ does not start, or accepts nothing
)

// Examination checks the machine and the configuration of a node. Dir, Now and Log are required.
type Examination struct {
	Dir          string
	Blobs        datadir.BlobsAt
	Documents    datadir.DocumentsAt
	Catalog      string   // directory of vendors' intent types; empty: none
	Skills       []string // skill servers: URLs or commands
	SkillServers []mcp.Source
	StartServers bool     // start those that are commands, to ask them for their tools
	Secrets      []string // files of the configuration that no skill server may see
	Named        []string // further files and directories that the configuration names; empty ones are none
	Policy       policies.Feed
	Driver       string // minimum sandbox driver; empty: the best there is
	FreeFloor    int64  // bytes of disk below which no new intent is accepted
	Now          func() time.Time
	Log          *slog.Logger
}

// Run finds what would prevent a node from running, and proves that a forbidden intent would be
// refused. It leaves nothing behind, and a node may use the data directory meanwhile. The content
// of an unusable directory is not checked.
func (e Examination) Run(ctx context.Context) []Finding {
	list := []Finding{e.data()}
	if list[0].Level != Fail {
		list = append(list, e.rights()...)
	}
	usable := Healthy(list)
	list = append(list, e.files()...)
	if usable {
		list = append(list, e.documents(ctx), e.blobs(ctx), e.keys(), e.clock(), e.executors(), e.log(ctx))
		list = append(append(list, e.running()...), e.directory(ctx)...)
	}
	return slices.Concat(list, e.sandbox(ctx), e.skills(ctx), e.policy(ctx))
}

func found(check, text string) Finding { return Finding{Check: check, Level: OK, Found: text} }

func warned(check, text, do string) Finding {
	return Finding{Check: check, Level: Warn, Found: text, Do: do}
}

func wrong(check string, err error, do string) Finding {
	if errors.Is(err, fs.ErrPermission) {
		err, do = datadir.Rights(err), giveIt
	}
	return Finding{Check: check, Level: Fail, Found: err.Error(), Do: do}
}

// giveIt is the hint for a path that this user may not read or write.
const giveIt = "run writ as the user to whom it belongs, or give it to this one with chown"

// data: the directory can be made or written to by this user and by nobody else, and has free
// space.
func (e Examination) data() Finding {
	const check = "data"
	at := e.Dir
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
		return wrong(check, fmt.Errorf("%s is not a directory", e.Dir), "name a directory with --data")
	case err == nil && info.Mode().Perm()&0o022 != 0:
		return wrong(check, fmt.Errorf("%s has mode %04o: others may write to it", e.Dir, info.Mode().Perm()), "chmod go-w "+e.Dir)
	}
	if err := datadir.MayNot(at, true); err != nil {
		return wrong(check, fmt.Errorf("%w; its content was not checked", err), "")
	}
	free, err := sqlite.Free(at)
	if err != nil {
		return wrong(check, fmt.Errorf("%s: %w", at, err), "")
	}
	if free < e.FreeFloor {
		return wrong(check, fmt.Errorf("only %d MiB are free at %s; below %d MiB no intent is accepted", free>>20, at, e.FreeFloor>>20),
			"make room, or lower free_disk_mb")
	}
	if at != e.Dir {
		return found(check, e.Dir+" will be made at the first start")
	}
	return found(check, fmt.Sprintf("%s, %d MiB free", at, free>>20))
}

// blobs: the place of blobs is the one that the directory remembers, and a server that stores them
// answers.
func (e Examination) blobs(ctx context.Context) Finding {
	const check = "blobs"
	at, err := e.Blobs.Place(e.Dir)
	if err != nil {
		return wrong(check, err, "see docs/storage.md")
	}
	if at.Local() {
		return found(check, "in the data directory")
	}
	if err := at.Look(ctx); err != nil {
		return wrong(check, err, "")
	}
	return found(check, at.URL+" answers")
}

// documents: a server that stores them answers. A server that is down does not prevent a start.
func (e Examination) documents(ctx context.Context) Finding {
	const check = "documents"
	if e.Documents.URL == "" {
		return found(check, "in the data directory")
	}
	d, err := datadir.RemoteDocuments(e.Documents)
	if err == nil {
		err = errors.Join(d.Look(ctx), d.Close())
	}
	switch {
	case errors.Is(err, storage.ErrUnavailable):
		return warned(check, err.Error(), "")
	case err != nil:
		return wrong(check, err, "")
	}
	return found(check, "the server of documents answers")
}

// keys: all exist, are readable and are nobody else's. If the root key is there too that is
// mentioned; it is not an error.
func (e Examination) keys() Finding {
	const check = "keys"
	dir := datadir.Keys(e.Dir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return found(check, "none yet: the first start makes them")
	}
	held, err := keydir.LoadAll(dir)
	if err != nil {
		return wrong(check, err, "restore the file with mode 0600; a key that is lost is replaced with writ admin keys rotate")
	}
	f := found(check, fmt.Sprintf("%d in %s", len(held), dir))
	for _, k := range held {
		if k.Role == intents.RoleRoot {
			f.Do = "take root.pem offline"
		}
	}
	return f
}

// clock: whether the time is before the last time written here. That does not prevent a start.
func (e Examination) clock() Finding {
	const check, leeway = "clock", 5 * time.Second
	now := e.Now()
	var newest time.Time
	_ = filepath.WalkDir(datadir.Journal(e.Dir), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // no journal yet
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	if now.Add(leeway).Before(newest) {
		return warned(check, fmt.Sprintf("it is %s, but the journal was written at %s", now.UTC().Format(time.RFC3339), newest.UTC().Format(time.RFC3339)),
			"set the clock, if it is wrong: intents would expire too late")
	}
	return found(check, now.UTC().Format(time.RFC3339))
}

// running: what a process that uses the directory reports about itself.
func (e Examination) running() []Finding {
	const check = "running"
	inUse := datadir.InUse(e.Dir)
	up, err := datadir.ReadConditions(e.Dir)
	if !inUse {
		up = slices.DeleteFunc(up, func(c health.Condition) bool { return c.Name != datadir.ConditionAside })
		if len(up) == 0 {
			return nil
		}
	}
	if err != nil {
		return []Finding{wrong(check, err, "look at /readyz of the writ that runs")}
	}
	if len(up) == 0 {
		return []Finding{found(check, "a running writ uses the directory, and says that it accepts intents")}
	}
	var list []Finding
	for _, c := range up {
		f := warned(check, c.Reason, strings.ReplaceAll(c.Do, "DIR", e.Dir))
		if c.Blocks {
			f.Level = Fail
		}
		list = append(list, f)
	}
	return list
}

// sandbox: a driver works that is strong enough. Those that do not work are listed with the reason.
// The runtime directory is temporary.
func (e Examination) sandbox(ctx context.Context) []Finding {
	const check = "sandbox"
	if known := sandbox.DriverNames(); e.Driver != "" && !slices.Contains(known, e.Driver) {
		return []Finding{wrong(check, fmt.Errorf("unknown driver %q", e.Driver), "name one of "+strings.Join(known, ", "))}
	}
	s, err := e.survey(ctx)
	if barred := datadir.MayNot(os.TempDir(), true); barred != nil || errors.Is(err, unix.ENOSPC) {
		return []Finding{warned(check, "the sandbox could not be tried: "+cmp.Or(barred, err).Error(), "name another directory for temporary files with TMPDIR")}
	}
	if err != nil {
		return []Finding{warned(check, "scripts would be refused: "+err.Error(), "install CPython 3.9 or later, or build with -tags embedpython")}
	}
	f := found(check, fmt.Sprintf("driver %s, python %s; not covered: %s", s.Driver, s.Python, sandbox.Uncovered(s.Driver)))
	if s.Driver == "" {
		f = warned(check, "scripts would be refused: no driver holds that is strong enough",
			"enable unprivileged user namespaces (sysctl user.max_user_namespaces) or Landlock (Linux 6.2, landlock in lsm=)")
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

func (e Examination) survey(ctx context.Context) (s sandbox.SurveyResult, err error) {
	dir, err := os.MkdirTemp("", "writ-doctor-")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // G302: sandboxes of another user pass
		return s, err
	}
	return sandbox.Survey(ctx, sandbox.Config{Dir: dir, Minimum: e.Driver, Workers: -1})
}

// policy: the catalog and the policy load; under them a forbidden, a forged and an expired intent
// are refused, and a good one is accepted.
func (e Examination) policy(ctx context.Context) []Finding {
	if _, err := catalog.Open(e.Catalog); err != nil {
		return []Finding{wrong("catalog", err, "mend the file, or leave --catalog out")}
	}
	engine, err := e.Policy.Engine()
	if err != nil {
		return []Finding{wrong("policy", err, "see writ policy check")}
	}
	list := []Finding{found("policy", "digest "+engine.Digest())}
	if err := router.Prove(ctx, engine, e.Now); err != nil {
		return append(list, wrong("proof", err, "the policy must keep the rule writ.selfproof.forbidden and allow the user role to find skills"))
	}
	return append(list, found("proof", "a forbidden intent is refused with POLICY_DENIED, a forged one with SIGNATURE_INVALID, an expired one with EXPIRED_TTL; a good one passes"))
}

// Healthy reports whether nothing fails.
func Healthy(list []Finding) bool {
	return !slices.ContainsFunc(list, func(f Finding) bool { return f.Level == Fail })
}
