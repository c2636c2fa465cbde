package sandbox

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Server is a third party's program that runs for long and communicates over its standard streams:
// a skill server. It sees what it needs to run and the declared files, and nothing else of the
// machine.
//
// It can read the directories of the system, a few files of /etc, the files that its command
// names, and the declared Files. It can write to a home of its own, which stays, a /tmp, which
// does not, and declared Files with Write. It has namespaces for users, mounts, processes, IPC
// and host name, one for the network where it is Offline, the uid of its parent without
// capabilities, and no system calls that affect other processes or the kernel.
//
// Memory, processor and disk are not bounded: it is a program that an operator chose, not a script
// that a model wrote. With the network it reaches listeners on this machine, and abstract sockets
// where the kernel has no Landlock of ABI 6.
type Server struct {
	Command []string     // the first word is looked up in SearchPath
	Env     []string     // NAME=value, besides PATH, LANG, HOME and TMPDIR
	Files   []ServerFile // that are declared
	Hidden  []string     // directories and files that it never sees
	Dir     string       // has its home, and stays
	Offline bool
}

// ServerFile is a path of the machine that a server is given.
type ServerFile struct {
	Path  string // absolute
	Write bool
}

// SearchPath is the PATH of a server: the one among its variables, or else the directories bin of its files, such as
// those of nvm and mise, and then ours.
func SearchPath(env []string, files []ServerFile) string {
	for _, v := range slices.Backward(env) {
		if path, is := strings.CutPrefix(v, "PATH="); is {
			return path
		}
	}
	var dirs []string
	for _, f := range files {
		dir := f.Path
		if base := filepath.Base(dir); base != "bin" && base != "shims" {
			dir = filepath.Join(dir, "bin")
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	dirs = append(dirs, cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin"))
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// FindProgram looks a program up in a PATH.
func FindProgram(name, path string) (string, error) {
	if !strings.Contains(name, "/") {
		for _, dir := range filepath.SplitList(path) {
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(found) {
				return found, nil
			}
		}
		return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	return exec.LookPath(name)
}

// ServerProcess is a running server. Its owner closes the files and calls Wait once.
type ServerProcess struct {
	Stdin, Stdout, Stderr *os.File

	Invisible []string     // paths that the command names and the server cannot see
	Barred    []string     // why it may not read or write files that are declared for it
	Wait      func() error // returns when the server and all that it started have ended
	Kill      func()       // ends them
}

// Places inside.
const (
	serverHome = "/skill"
	serverTmp  = "/tmp"
)
