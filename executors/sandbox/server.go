package sandbox

import "os"

// Server is a program that others wrote, which runs for long and speaks over its
// standard streams: a skill server. It is given what it needs to run and what is
// declared, and sees nothing else of the machine.
//
// In sight are, to read: the directories of the system, a few files of /etc, the
// interpreter and package of the command, and the declared Files. To write: a
// home of its own, which stays, a /tmp, which does not, and declared Files that
// say so. It has namespaces for mounts, processes, IPC and host name, one for the
// network where it is Offline, no capabilities, as root a uid that nobody else
// has, and no system call by which a process gets at others or at the kernel.
//
// Not bounded are memory, processor and disk; it is a program that an operator
// chose, not a script that a model wrote. Where it has the network, it reaches
// what listens on this machine; an abstract socket it reaches only where the
// kernel has no Landlock of ABI 6.
type Server struct {
	Command []string     // the first word is looked up in PATH
	Env     []string     // NAME=value, besides PATH, LANG, HOME and TMPDIR
	Files   []ServerFile // that are declared
	Hidden  []string     // directories and files that are never in sight
	Dir     string       // holds its home, and stays
	Offline bool
}

// ServerFile is a path of the machine that a server is given.
type ServerFile struct {
	Path  string // absolute
	Write bool
}

// ServerProcess is a running server. Its owner closes the files and calls Wait once.
type ServerProcess struct {
	Stdin, Stdout, Stderr *os.File

	Unseen []string     // paths that the command names and the server cannot see
	Wait   func() error // returns when the server and all that it started have ended
	Kill   func()       // ends them
}

// Places inside.
const (
	serverHome = "/skill"
	serverTmp  = "/tmp"
)
