package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage/internal/codec"
)

// KeysName is the name of the directory of key files, beside the directory of the journal.
const KeysName = "erasable"

// keysPerFile is how many keys a file has. One file is 128 KiB.
const keysPerFile = 4096

// keyFiles are the keys of the erasable parts of records. Slot s is key s%keysPerFile of file
// s/keysPerFile; files are numbered from 1. Safe for concurrent use.
//
// Durability: a file is whole and synced before its first key is used, so a commit writes no
// key. Each process begins a file of its own; a crash wastes the keys that are left. Only
// erase ever changes a file.
type keyFiles struct {
	dir string

	mu     sync.Mutex // guards all below
	file   uint64     // the file that new keys are of; 0: none yet
	keys   []byte     // those of it that are left
	number uint64     // the file that was read last
	open   *os.File
}

func keysOf(journal string) *keyFiles {
	return &keyFiles{dir: filepath.Join(filepath.Dir(filepath.Clean(journal)), KeysName)}
}

func (k *keyFiles) path(file uint64) string {
	return filepath.Join(k.dir, fmt.Sprintf("%010d", file))
}

// files are the numbers of those that exist, in order.
func (k *keyFiles) files() (numbers []uint64, err error) {
	entries, err := os.ReadDir(k.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.Name(), 10, 64); err == nil && filepath.Base(k.path(n)) == e.Name() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

// missing are the files before and with a number that do not exist, or are not whole.
func (k *keyFiles) missing(last uint64) (numbers []uint64, err error) {
	for n := uint64(1); n <= last; n++ {
		info, err := os.Stat(k.path(n))
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && info.Size() != keysPerFile*codec.KeySize:
			numbers = append(numbers, n)
		case err != nil:
			return nil, err
		}
	}
	return numbers, nil
}

// begin the files after one that records have keys of.
func (k *keyFiles) begin(last uint64) { k.file = last }

// fresh returns a key that nothing uses, and makes a file if none is left.
//
// A crash before the file has its name leaves a part that the next start replaces; a crash
// after it leaves a file of keys that nothing uses.
func (k *keyFiles) fresh() (slot uint64, key codec.Key, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.keys) == 0 {
		if err := k.make(); err != nil {
			return 0, key, fmt.Errorf("keys of erasable parts: %w", err)
		}
	}
	slot = (k.file+1)*keysPerFile - uint64(len(k.keys)/codec.KeySize)
	copy(key[:], k.keys)
	clear(k.keys[:codec.KeySize])
	k.keys = k.keys[codec.KeySize:]
	return slot, key, nil
}

// make the next file.
func (k *keyFiles) make() error {
	if err := durable.MkdirAll(k.dir); err != nil {
		return err
	}
	numbers, err := k.files()
	if err != nil {
		return err
	}
	if len(numbers) > 0 {
		k.file = max(k.file, numbers[len(numbers)-1])
	}
	keys := codec.NewKeys(keysPerFile)
	failpoint.Hit(failpoint.KeysMaking)
	if err := durable.Write(k.path(k.file+1), keys); err != nil {
		return err
	}
	failpoint.Hit(failpoint.KeysMade)
	k.file, k.keys = k.file+1, keys
	return nil
}

// key reads the key of a slot.
func (k *keyFiles) key(slot uint64) (key codec.Key, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if file := slot / keysPerFile; k.open == nil || k.number != file {
		if err := k.close(); err != nil {
			return key, err
		}
		f, err := os.Open(k.path(file))
		if errors.Is(err, fs.ErrNotExist) {
			return key, fmt.Errorf("%w: %s is missing", codec.ErrLost, k.path(file))
		}
		if err != nil {
			return key, err
		}
		k.open, k.number = f, file
	}
	n, err := k.open.ReadAt(key[:], int64(slot%keysPerFile)*codec.KeySize)
	if n < len(key) && errors.Is(err, io.EOF) {
		return key, fmt.Errorf("%w: %s is cut off", codec.ErrLost, k.open.Name())
	}
	if n < len(key) {
		return key, err
	}
	return codec.Read(key[:])
}

// erase overwrites keys with zeros, and returns once these are synced. A file that is missing
// is no error: its keys are gone.
//
// A crash in it leaves some of the keys, and the accepted erasure in the log: the next start
// erases again.
func (k *keyFiles) erase(slots []uint64) error {
	for file, some := range codec.ByFile(slots, keysPerFile) {
		if err := k.zero(file, some); err != nil {
			return fmt.Errorf("erase keys: %w", err)
		}
	}
	return nil
}

func (k *keyFiles) zero(file uint64, slots []uint64) (err error) {
	f, err := os.OpenFile(k.path(file), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var zeros codec.Key
	for _, slot := range slots {
		if _, err := f.WriteAt(zeros[:], int64(slot%keysPerFile)*codec.KeySize); err != nil {
			return err
		}
	}
	failpoint.Hit(failpoint.KeysErasing)
	if err := f.Sync(); err != nil {
		return err
	}
	failpoint.Hit(failpoint.KeysErased)
	return nil
}

// close the file that was read last.
func (k *keyFiles) close() (err error) {
	if k.open != nil {
		err = k.open.Close()
	}
	k.open = nil
	return err
}

// Close ends reading.
func (k *keyFiles) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.keys)
	k.keys = nil
	return k.close()
}
