package sqlite_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// tap sits between SQLite and the files of one directory and notes what is
// written, cut, removed and synced there, in order. It has all that a disk would
// have at a power cut.
type tap struct {
	dir string

	mu     sync.Mutex // guards what follows, and keeps the log in the order of the calls
	log    []action
	broken func(file string) bool // if not nil and true for a file, its sync fails
	full   func(file string) bool // if not nil and true for a file, nothing more fits into it
}

type verb int

const (
	wrote verb = iota
	cut
	removed
	synced
	noted // no file: the test got an answer
)

// action is one entry of the log. A sync covers the writes of its file before
// began, the end of the log when it was called.
type action struct {
	verb  verb
	file  string // in the directory
	at    int64  // of wrote; the size of cut
	data  []byte
	began int
	event string // of tell
}

func (t *tap) add(a action) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = append(t.log, a)
}

// tell notes an event of the test, such as an answer.
func (t *tap) tell(what string) { t.add(action{verb: noted, event: what}) }

func (t *tap) here() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.log)
}

// taps of this test binary. SQLite knows one file system, ours, from the first
// tap on; it passes everything through, and notifies the tap of the directory.
var taps struct {
	mu    sync.RWMutex // guards what follows
	list  []*tap
	files map[uintptr]string // open files of tapped directories, by SQLite's handle

	once   sync.Once
	under  uintptr             // SQLite's own file system
	copies map[uintptr]uintptr // its tables of file methods to our copies of them
	own    map[uintptr]uintptr // and back
}

// newTap taps a directory until the test ends.
func newTap(t testing.TB, dir string) *tap {
	t.Helper()
	taps.once.Do(installTaps)
	w := &tap{dir: dir}
	taps.mu.Lock()
	defer taps.mu.Unlock()
	taps.list = append(taps.list, w)
	return w
}

func installTaps() {
	tls := libc.NewTLS()
	taps.files, taps.copies, taps.own = make(map[uintptr]string), make(map[uintptr]uintptr), make(map[uintptr]uintptr)
	taps.under = sqlite3.Xsqlite3_vfs_find(tls, 0)
	vfs := *at[sqlite3.Tsqlite3_vfs](taps.under)
	name, err := libc.CString("tapped")
	if err != nil {
		panic(err)
	}
	vfs.FzName, vfs.FpNext = name, 0
	vfs.FxOpen, vfs.FxDelete = pointer(tapOpen), pointer(tapDelete)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, kept(tls, vfs), 1); rc != sqlite3.SQLITE_OK {
		panic(rc)
	}
}

// at is what SQLite stores at an address of its own memory.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// kept stores a value in SQLite's memory, for good.
func kept[T any](tls *libc.TLS, v T) uintptr {
	address := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(v)))
	if address == 0 {
		panic("out of memory")
	}
	*at[T](address) = v
	return address
}

// function is SQLite's function at an address, pointer the address of one of ours.
func function[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{address})) }

func pointer(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }

type (
	openFunc   = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	deleteFunc = func(tls *libc.TLS, vfs, name uintptr, sync int32) int32
	writeFunc  = func(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32
	cutFunc    = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc   = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// tapOf is the tap of a path.
func tapOf(path string) *tap {
	taps.mu.RLock()
	defer taps.mu.RUnlock()
	for _, t := range taps.list {
		if strings.HasPrefix(path, t.dir+string(filepath.Separator)) {
			return t
		}
	}
	return nil
}

func tapOpen(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
	rc := function[openFunc](at[sqlite3.Tsqlite3_vfs](taps.under).FxOpen)(tls, taps.under, name, file, flags, out)
	if rc != sqlite3.SQLITE_OK || name == 0 || tapOf(libc.GoString(name)) == nil {
		return rc
	}
	taps.mu.Lock()
	defer taps.mu.Unlock()
	taps.files[file] = libc.GoString(name)
	f := at[sqlite3.Tsqlite3_file](file)
	if _, ok := taps.copies[f.FpMethods]; !ok {
		m := *at[sqlite3.Tsqlite3_io_methods](f.FpMethods)
		m.FxWrite, m.FxTruncate, m.FxSync = pointer(tapWrite), pointer(tapCut), pointer(tapSync)
		copied := kept(tls, m)
		taps.copies[f.FpMethods], taps.own[copied] = copied, f.FpMethods
	}
	f.FpMethods = taps.copies[f.FpMethods]
	return rc
}

// tapped returns what a file's call needs.
func tapped(file uintptr) (t *tap, name string, own sqlite3.Tsqlite3_io_methods) {
	taps.mu.RLock()
	path := taps.files[file]
	own = *at[sqlite3.Tsqlite3_io_methods](taps.own[at[sqlite3.Tsqlite3_file](file).FpMethods])
	taps.mu.RUnlock()
	return tapOf(path), filepath.Base(path), own
}

func tapDelete(tls *libc.TLS, _, name uintptr, sync int32) int32 {
	path := libc.GoString(name)
	rc := function[deleteFunc](at[sqlite3.Tsqlite3_vfs](taps.under).FxDelete)(tls, taps.under, name, sync)
	if t := tapOf(path); t != nil && rc == sqlite3.SQLITE_OK {
		t.add(action{verb: removed, file: filepath.Base(path)})
	}
	return rc
}

func tapWrite(tls *libc.TLS, file, data uintptr, n int32, offset int64) int32 {
	t, name, own := tapped(file)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.full != nil && t.full(name) {
		return sqlite3.SQLITE_FULL
	}
	t.log = append(t.log, action{verb: wrote, file: name, at: offset, data: bytes.Clone(libc.GoBytes(data, int(n)))})
	return function[writeFunc](own.FxWrite)(tls, file, data, n, offset)
}

func tapCut(tls *libc.TLS, file uintptr, size int64) int32 {
	t, name, own := tapped(file)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = append(t.log, action{verb: cut, file: name, at: size})
	return function[cutFunc](own.FxTruncate)(tls, file, size)
}

func tapSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	t, name, own := tapped(file)
	began := t.here()
	t.mu.Lock()
	broken := t.broken != nil && t.broken(name)
	t.mu.Unlock()
	if broken {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	rc := function[syncFunc](own.FxSync)(tls, file, flags)
	if rc == sqlite3.SQLITE_OK {
		t.add(action{verb: synced, file: name, began: began})
	}
	return rc
}
