package keydir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/intents"
)

// create makes a directory of keys.
func create(t *testing.T) (dir string, keys Keys) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "keys")
	keys, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, keys
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// same reports whether two sets hold the same keys.
func same(t *testing.T, a, b Keys) {
	t.Helper()
	if len(a) != len(b) {
		t.Errorf("%d keys and %d", len(a), len(b))
	}
	for role, s := range a {
		if b[role].KID != s.KID {
			t.Errorf("the %s key is another one", role)
		}
	}
}

func TestCreate(t *testing.T) {
	dir, keys := create(t)
	if got := mode(t, dir); got != 0o700 {
		t.Errorf("the directory has mode %04o", got)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(Roles) || len(keys) != len(Roles) {
		t.Fatalf("%d files and %d keys for %d roles", len(files), len(keys), len(Roles))
	}
	kids := map[string]intents.Role{}
	for _, role := range Roles {
		if got := mode(t, file(dir, role)); got != 0o600 {
			t.Errorf("the %s key has mode %04o", role, got)
		}
		s := keys[role]
		if s.Role != role {
			t.Errorf("the %s key says that it is one of %s", role, s.Role)
		}
		if other, taken := kids[s.KID]; taken {
			t.Errorf("%s and %s have one key", role, other)
		}
		kids[s.KID] = role
	}
	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	same(t, keys, loaded)
}

// TestCreateKeepsExisting: what is there stays.
func TestCreateKeepsExisting(t *testing.T) {
	dir, keys := create(t)
	again, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	same(t, keys, again)
}

// TestCreateAfterCrash stops Create behind each key in turn, with the next one
// not begun, begun, or half written, and has the next start complete it.
func TestCreateAfterCrash(t *testing.T) {
	_, made := create(t)
	for n := range Roles {
		for _, left := range []struct {
			name string
			part []byte
		}{{"nothing of the next", nil}, {"the next begun", []byte{}}, {"the next half written", []byte("-----BEGIN PRIVATE KEY-----\nMC4C")}} {
			dir := filepath.Join(t.TempDir(), "keys")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, role := range Roles[:n] {
				if err := intents.WriteKey(file(dir, role), made[role]); err != nil {
					t.Fatal(err)
				}
			}
			if left.part != nil {
				if err := os.WriteFile(file(dir, Roles[n])+".part", left.part, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			keys, err := Create(dir)
			if err != nil {
				t.Errorf("%d keys, %s: %v", n, left.name, err)
				continue
			}
			for i, role := range Roles {
				if kept := keys[role].KID == made[role].KID; kept != (i < n) {
					t.Errorf("%d keys, %s: the %s key was kept: %t", n, left.name, role, kept)
				}
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != len(Roles) {
				t.Errorf("%d keys, %s: %d files remain, error %v", n, left.name, len(files), err)
			}
		}
	}
}

func TestLoadWorldReadable(t *testing.T) {
	for _, perm := range []fs.FileMode{0o640, 0o604, 0o620, 0o601} {
		dir, _ := create(t)
		path := file(dir, intents.RoleManager)
		if err := os.Chmod(path, perm); err != nil {
			t.Fatal(err)
		}
		_, err := Load(dir)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %04o: error = %v, which must name the file and what to do", perm, err)
		}
	}
}

// TestLoadWithoutRoot: the root key belongs offline; it is no part of the key
// set, which admits.
func TestLoadWithoutRoot(t *testing.T) {
	dir, keys := create(t)
	if err := os.Remove(file(dir, intents.RoleRoot)); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := loaded[intents.RoleRoot]; there {
		t.Error("a root key comes from nowhere")
	}
	delete(keys, intents.RoleRoot)
	same(t, keys, loaded)
	if _, err := loaded.KeySet().Admit(); err != nil {
		t.Error(err)
	}
}

func TestLoadMissing(t *testing.T) {
	for _, role := range Roles {
		if role == intents.RoleRoot {
			continue
		}
		dir, _ := create(t)
		if err := os.Remove(file(dir, role)); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), string(role)) {
			t.Errorf("without the %s key: %v", role, err)
		}
	}
}

func TestLoadDamaged(t *testing.T) {
	dir, _ := create(t)
	path := file(dir, intents.RoleRoot)
	if err := os.WriteFile(path, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a root key that is there and damaged: %v", err)
	}
}

func TestKeySet(t *testing.T) {
	_, keys := create(t)
	set := keys.KeySet()
	if set.Version != 1 || set.Prev != "" {
		t.Errorf("version %d after %q", set.Version, set.Prev)
	}
	admitted, err := set.Admit()
	if err != nil {
		t.Fatal(err)
	}
	if len(admitted) != len(Roles)-1 {
		t.Errorf("%d keys of %d roles", len(admitted), len(Roles))
	}
	for role, s := range keys {
		k, in := admitted[s.KID]
		switch {
		case role == intents.RoleRoot && in:
			t.Error("the root key is in the set that it signs")
		case role != intents.RoleRoot && k.Role != role:
			t.Errorf("the %s key stands in the set as %q", role, k.Role)
		case role == intents.RoleOperator && (k.Subject != "local" || k.Tenant != "system"):
			t.Errorf("the operator is %q of %q", k.Subject, k.Tenant)
		}
	}
}

// TestLoadSome: a directory of one role has its key alone, which is all that it must have.
func TestLoadSome(t *testing.T) {
	dir, keys := create(t)
	for _, role := range Roles {
		if role != intents.RoleManager {
			if err := os.Remove(file(dir, role)); err != nil {
				t.Fatal(err)
			}
		}
	}
	held, err := LoadSome(dir)
	if err != nil || len(held) != 1 {
		t.Fatalf("%d keys, %v", len(held), err)
	}
	set := keys.KeySet().Keys
	if got, err := held.InForce(set, intents.RoleManager); err != nil || got[intents.RoleManager].KID != keys[intents.RoleManager].KID {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := held.InForce(set, intents.RoleManager, intents.RoleRouter); err == nil || !strings.Contains(err.Error(), "router") {
		t.Errorf("a role without a key: %v", err)
	}
	if _, err := LoadAll(dir); err == nil {
		t.Error("keys are missing, and all are loaded")
	}
	if err := os.Chmod(file(dir, intents.RoleManager), 0o440); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSome(dir); err != nil {
		t.Errorf("as mounted for a pod: %v", err)
	}
}
