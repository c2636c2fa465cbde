package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/storage/internal/codec"
)

// UserKeysName is the name of the file with users' keys, in the directory of key files.
const UserKeysName = "users"

// userName is the digest of a tenant and a user, as the file has it.
type userName [sha256.Size]byte

func nameOf(tenant, user string) userName {
	return sha256.Sum256(append(binary.AppendUvarint(nil, uint64(len(tenant))), tenant+user...))
}

// userSlot is the size of a slot, in bytes: a name and its key.
const userSlot = sha256.Size + codec.KeySize

// UserKeys are the keys that backups encrypt each user's documents under. A tenant's own documents
// have the key of its user "". The file is beside the keys of records, and like them in no
// backup; 64 bytes a user. It belongs to one goroutine. Several processes may add and erase keys.
//
// Slots are added, under a lock of the file, and a key is overwritten with zeros. A user has at
// most one that was not.
//
// Crash: a slot that was cut off is written over. A backup is none before Sync has returned.
type UserKeys struct {
	dir  string
	file *os.File // nil: not opened yet
	read int64    // bytes of whole slots
	keys map[userName]codec.Key
	gone map[userName]bool // one was destroyed
}

// OpenUserKeys reads the users' keys of a data directory. Without a file there are none.
func OpenUserKeys(data string) (*UserKeys, error) {
	k := &UserKeys{dir: filepath.Join(data, KeysName), keys: map[userName]codec.Key{}, gone: map[userName]bool{}}
	f, err := os.Open(k.path())
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = errors.Join(k.follow(f), f.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("keys of users: %w", err)
	}
	return k, nil
}

func (k *UserKeys) path() string { return filepath.Join(k.dir, UserKeysName) }

// follow reads the slots behind those that were read.
func (k *UserKeys) follow(f io.ReaderAt) error {
	return eachSlot(f, k.read, func(name userName, key codec.Key, _ int64) error {
		k.read += userSlot
		if key == (codec.Key{}) {
			k.gone[name] = true
		} else {
			k.keys[name] = key
		}
		return nil
	})
}

func eachSlot(f io.ReaderAt, from int64, look func(name userName, key codec.Key, at int64) error) error {
	var buf [1024 * userSlot]byte
	for {
		n, err := f.ReadAt(buf[:], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for whole := buf[:n-n%userSlot]; len(whole) > 0; whole = whole[userSlot:] {
			if err := look(userName(whole), codec.Key(whole[sha256.Size:userSlot]), from); err != nil {
				return err
			}
			from += userSlot
		}
		if err != nil {
			return nil //nolint:nilerr // the end of the file
		}
	}
}

// of is the key of a user. codec.ErrErased: it was destroyed; codec.ErrLost: there was none.
func (k *UserKeys) of(tenant, user string) (codec.Key, error) {
	name := nameOf(tenant, user)
	key, there := k.keys[name]
	switch {
	case there:
		return key, nil
	case k.gone[name]:
		return key, codec.ErrErased
	default:
		return key, codec.ErrLost
	}
}

// erased reports whether a key of the user was destroyed.
func (k *UserKeys) erased(tenant, user string) bool { return k.gone[nameOf(tenant, user)] }

// add is the key of a user, which it makes if there is none.
func (k *UserKeys) add(tenant, user string) (key codec.Key, err error) {
	if key, err = k.of(tenant, user); err == nil {
		return key, nil
	}
	if k.file == nil {
		if err := durable.MkdirAll(k.dir); err != nil {
			return key, err
		}
		if k.file, err = os.OpenFile(k.path(), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return key, err
		}
		if err := sameOwner(k.file, k.dir); err != nil {
			return key, err
		}
	}
	err = locked(k.file, func() error {
		if err := k.follow(k.file); err != nil {
			return err
		}
		if key, err = k.of(tenant, user); err == nil {
			return nil // by another process
		}
		name := nameOf(tenant, user)
		key = codec.Key(codec.NewKeys(1))
		if _, err := k.file.WriteAt(append(name[:], key[:]...), k.read); err != nil {
			return err
		}
		k.read += userSlot
		k.keys[name] = key
		return nil
	})
	return key, err
}

// sameOwner gives a file to the owner of its directory: a node must be able to erase keys that a backup by
// root has made.
func sameOwner(f *os.File, dir string) error {
	var above, is unix.Stat_t
	if err := errors.Join(unix.Stat(dir, &above), unix.Fstat(int(f.Fd()), &is)); err != nil {
		return err
	}
	if above.Uid == is.Uid && above.Gid == is.Gid {
		return nil
	}
	return f.Chown(int(above.Uid), int(above.Gid))
}

// locked calls a function while no other process changes the file.
func locked(f *os.File, do func() error) (err error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Flock(int(f.Fd()), unix.LOCK_UN)) }()
	return do()
}

// Sync makes the keys that were added durable. Nothing may be added afterwards.
func (k *UserKeys) Sync() error {
	if k.file == nil {
		return nil
	}
	err := k.file.Sync()
	err = errors.Join(err, k.file.Close(), durable.SyncDir(k.dir))
	k.file = nil
	return err
}

// EraseUserKey overwrites the key of a user with zeros and syncs; see storage.UserKeys. Without a key
// nothing happens.
func (d *Documents) EraseUserKey(_ context.Context, tenant, user string) error {
	if err := eraseUserKey(filepath.Join(filepath.Dir(d.db.path), KeysName, UserKeysName), tenant, user); err != nil {
		return fmt.Errorf("erase the key of a user: %w", err)
	}
	return nil
}

func eraseUserKey(path, tenant, user string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // G304: below the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	name := nameOf(tenant, user)
	return locked(f, func() error {
		err := eachSlot(f, 0, func(at userName, _ codec.Key, slot int64) error {
			if at != name {
				return nil
			}
			_, err := f.WriteAt(make([]byte, codec.KeySize), slot+sha256.Size)
			return err
		})
		return errors.Join(err, f.Sync())
	})
}
