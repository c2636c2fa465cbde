// Package datadir defines the layout of a data directory, for the process that serves it and for
// the commands that maintain it:
//
//	keys/        private keys, the secret of tags, the first API key
//	journal/     the record of intents
//	ledger/      the log over it
//	documents.db documents, unless an OpenSearch has them
//	blobs/       artifacts and temporary files, unless a server has them
//	access/      who read what, a file a day
//	executors/   credentials of external executors
//	readers/     credentials of readers of events
//	lock         locked by the process that uses the directory
//	address      URL of that process
//	started      the log has begun
//	breakers.json breakers of skill servers that fail
//	policy_shadow.json how a policy decides that is tried
//	notices-*.json what receivers of notices were told
//	audit-stream.json how far the record was streamed
//
// Any other file belongs to one package.
package datadir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Keys is the directory of private keys.
func Keys(dir string) string { return filepath.Join(dir, "keys") }

// Tags is the file with the secret that tenants' tag keys are derived from.
func Tags(dir string) string { return filepath.Join(Keys(dir), "tags") }

// Journal is the directory of the journal.
func Journal(dir string) string { return filepath.Join(dir, "journal") }

// JournalFile is the journal's database.
func JournalFile(dir string) string { return filepath.Join(Journal(dir), "journal.db") }

// Snapshot is the file with the state derived from the journal's records. It may be removed while
// no process serves the directory.
func Snapshot(dir string) string { return filepath.Join(dir, "snapshot") }

// Breakers is the file with the breakers of skill servers that fail. Nothing depends on it: without
// it all are called.
func Breakers(dir string) string { return filepath.Join(dir, "breakers.json") }

// PolicyShadow is the file with the report on the policy that is tried beside the one in force. Nothing
// depends on it.
func PolicyShadow(dir string) string { return filepath.Join(dir, "policy_shadow.json") }

// AuditStream is the file that says how far the record was streamed. Without it, it is streamed from
// its beginning.
func AuditStream(dir string) string { return filepath.Join(dir, "audit-stream.json") }

// Notices is the file with what a receiver of notices was told. Without it, what waits is told again.
func Notices(dir, receiver string) string { return filepath.Join(dir, "notices-"+receiver+".json") }

// Ledger is the directory of the log.
func Ledger(dir string) string { return filepath.Join(dir, "ledger") }

// AccessLog is the directory of the access log.
func AccessLog(dir string) string { return filepath.Join(dir, "access") }

// DocumentsFile is the directory's own database of documents.
func DocumentsFile(dir string) string { return filepath.Join(dir, "documents.db") }

// SandboxFile records the driver that scripts ran under, if no setting names one.
func SandboxFile(dir string) string { return filepath.Join(dir, "sandbox") }

// Runtime is the directory of the sandbox's runtime.
func Runtime(dir string) string { return filepath.Join(dir, "runtime") }

// KeyFile contains the first API key, mode 0600, beside the private keys: whoever can read it can
// read them, too. Commands on this machine use it.
func KeyFile(dir string) string { return filepath.Join(Keys(dir), "api_key") }

// LocalKey reads the first API key.
func LocalKey(dir string) (string, error) { return readKey(os.ReadFile(KeyFile(dir))) }

// PersonKey reads the key by which a person decides.
func PersonKey(dir string) (string, error) { return readKey(os.ReadFile(PersonKeyFile(dir))) }

func readKey(raw []byte, err error) (string, error) {
	return strings.TrimSpace(string(raw)), err
}

// PersonKeyFile contains the API key by which a person who is alone with this writ decides, mode 0600.
func PersonKeyFile(dir string) string { return filepath.Join(Keys(dir), "person_key") }

// Make makes a data directory if there is none. Its name is durable when Make returns, even
// if an earlier start was interrupted or somebody else made it.
func Make(dir string) error {
	if err := durable.MkdirAll(dir); err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := durable.SyncDir(filepath.Dir(abs)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil // the parent belongs to another user, who made ours in it
}

// RebuildState rebuilds the state from the records of a journal.
func RebuildState(ctx context.Context, records storage.Records) (*state.State, error) {
	rebuilt := state.New()
	for rec, err := range records.Scan(ctx, 0) {
		if err != nil {
			return rebuilt, err
		}
		rebuilt.Observe(state.EntryOf(rec))
	}
	return rebuilt, rebuilt.Err()
}

// LedgerKeys are all ledger keys of the log so far. Replaced keys stay in the key set.
func LedgerKeys(rebuilt *state.State) []intents.Key {
	var out []intents.Key
	for _, j := range rebuilt.JWKS().Keys {
		if j.Role != intents.RoleLedger {
			continue
		}
		if key, err := j.ToKey(); err == nil { // admitted before
			out = append(out, key)
		}
	}
	return out
}
