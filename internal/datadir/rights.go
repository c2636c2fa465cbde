package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Rights explains a permission error: which user may not use which file. Other errors are returned
// unchanged. The result wraps err.
func Rights(err error) error {
	var at *fs.PathError
	if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &at) {
		return err
	}
	what := "read"
	if MayNot(at.Path, false) == nil {
		what = "write to"
	}
	return &rightsError{strings.Replace(err.Error(), at.Error(), barred(what, at.Path), 1), err}
}

type rightsError struct {
	says string
	err  error
}

func (r *rightsError) Error() string { return r.says }
func (r *rightsError) Unwrap() error { return r.err }

// MayNot returns an error that names the user who may not read a file or directory or, with write,
// write to it; nil: this user may, or it does not exist.
func MayNot(path string, write bool) error {
	mode, what := uint32(unix.R_OK), "read"
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		mode |= unix.X_OK
	}
	if write {
		mode, what = mode|unix.W_OK, "read and write"
	}
	err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) {
		return nil // its reader finds other faults
	}
	return &rightsError{barred(what, path), err}
}

// barred words which user may not do what. A file below a directory that this user may not enter
// cannot be examined: then the text is about the directory.
func barred(what, path string) string {
	info, err := os.Stat(path)
	for ; errors.Is(err, fs.ErrPermission) && filepath.Dir(path) != path; info, err = os.Stat(path) {
		what, path = "enter", filepath.Dir(path)
	}
	text := fmt.Sprintf("user %s may not %s %s", named(user.LookupId(strconv.Itoa(os.Geteuid()))), what, path)
	if err != nil {
		return text
	}
	if of, ok := info.Sys().(*syscall.Stat_t); ok {
		text += fmt.Sprintf(", which belongs to %s and has mode %04o", named(user.LookupId(strconv.FormatUint(uint64(of.Uid), 10))), info.Mode().Perm())
	}
	return text
}

// named is the name of a user, or its number where it has none.
func named(u *user.User, err error) string {
	if none, ok := errors.AsType[user.UnknownUserIdError](err); ok {
		return strconv.Itoa(int(none))
	}
	if err != nil {
		return "unknown"
	}
	return u.Username
}
