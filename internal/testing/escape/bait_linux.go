//go:build amd64 || arm64

package escape

import (
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// numbers are those of system calls; column is that of this architecture.
//
//go:embed numbers.txt
var numbers string

var column = map[string]int{"amd64": 1, "arm64": 2}[runtime.GOARCH]

// secret must never be printed by a probe. It is in the bait, not in any script.
const secret = "TOP" + "SECRET"

// Bait is a set of targets on the host for an escaped script. Each probe knows where it is.
type Bait struct {
	dir      string
	abstract string
	closers  []func() error
	tcp, udp int
}

// LayBait puts secrets where a sandbox must not find them, in a new directory below
// dir: files that anybody may read and write, sockets, an environment variable
// and a descriptor that is not closed on exec. Lay it before the sandbox is
// opened. Remove takes all of it back.
func LayBait(dir string) (*Bait, error) {
	b := &Bait{abstract: fmt.Sprintf("writ-bait-%d", os.Getpid())}
	var err error
	if b.dir, err = os.MkdirTemp(dir, "bait-"); err != nil {
		return nil, err
	}
	b.closers = append(b.closers, func() error { return os.RemoveAll(b.dir) })
	for _, lay := range []func() error{b.layFiles, b.leak, b.listen} {
		if err := lay(); err != nil {
			return nil, errors.Join(fmt.Errorf("lay bait: %w", err), b.Remove())
		}
	}
	return b, nil
}

// Remove takes the bait back.
func (b *Bait) Remove() error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

func (b *Bait) path(name string) string { return filepath.Join(b.dir, name) }

func (b *Bait) layFiles() error {
	const everybody, pass = 0o666, 0o755
	if err := os.Chmod(b.dir, pass); err != nil {
		return err
	}
	for _, name := range []string{"secret", "victim"} {
		if err := os.WriteFile(b.path(name), []byte(secret), everybody); err != nil {
			return err
		}
		if err := os.Chmod(b.path(name), everybody); err != nil {
			return err
		}
	}
	return nil
}

// leak opens the secret on a descriptor above those of a sandbox that is not closed on
// exec, as a careless library would, and puts it into the environment.
func (b *Bait) leak() error {
	const variable, above = "WRIT_BAIT", 9
	fd, err := unix.Open(b.path("secret"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	leaked, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, above)
	if err := errors.Join(err, unix.Close(fd), os.Setenv(variable, secret)); err != nil {
		return err
	}
	b.closers = append(b.closers, func() error { return errors.Join(unix.Close(leaked), os.Unsetenv(variable)) })
	return nil
}

// listen opens one socket of each kind that a script could reach without rights.
func (b *Bait) listen() error {
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	b.closers = append(b.closers, tcp.Close)
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	b.closers = append(b.closers, udp.Close)
	go echo(udp)
	b.tcp, b.udp = portOf(tcp.Addr()), portOf(udp.LocalAddr())
	for _, name := range []string{"@" + b.abstract, b.path("socket")} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			return err
		}
		b.closers = append(b.closers, l.Close)
	}
	return os.Chmod(b.path("socket"), 0o666) //nolint:gosec // G302: sandboxes of another user pass
}

// echo answers each datagram until the socket is closed.
func echo(udp *net.UDPConn) {
	buf := make([]byte, 64)
	for {
		n, from, err := udp.ReadFromUDP(buf)
		if err != nil {
			return
		}
		_, _ = udp.WriteToUDP(buf[:n], from)
	}
}

func portOf(a net.Addr) int {
	_, port, _ := net.SplitHostPort(a.String())
	n, _ := strconv.Atoi(port)
	return n
}

// definitions is the Python code that tells a probe where the bait is.
func (b *Bait) definitions() string {
	var s strings.Builder
	for name, value := range map[string]string{
		"SECRET": b.path("secret"), "VICTIM": b.path("victim"), "SOCKET": b.path("socket"), "ABSTRACT": "\x00" + b.abstract,
	} {
		fmt.Fprintf(&s, "%s = %s\n", name, strconv.QuoteToASCII(value))
	}
	fmt.Fprintf(&s, "TCP, UDP, PARENT = %d, %d, %d\nNR = {", b.tcp, b.udp, os.Getpid())
	for line := range strings.Lines(numbers) {
		if call := strings.Fields(line); call[0] != "#" && call[column] != "-" {
			fmt.Fprintf(&s, "%q: %s, ", call[0], call[column])
		}
	}
	s.WriteString("}\n")
	return s.String()
}

// victimState is the state of the victim that a probe could have changed.
type victimState struct {
	mode, uid, gid uint32
	size           int64
	changed        unix.Timespec
}

func (b *Bait) victim() (victimState, error) {
	var st unix.Stat_t
	if err := unix.Stat(b.path("victim"), &st); err != nil {
		return victimState{}, err
	}
	return victimState{st.Mode, st.Uid, st.Gid, st.Size, st.Mtim}, nil
}
