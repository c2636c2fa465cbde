//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"aob.dev/writ/executors/sandbox/spawn"
)

// serverSpec is what the process of a server is made from.
type serverSpec struct {
	sandboxSpec             // of which ids and namespaces count
	visible     *visible    // of the machine
	root        string      // empty directory that the new root is mounted at
	home        string      // host path
	etc         [][2]string // host path and place of files that were made for it
	empty       string      // host path of an empty file
	env         []string
	proc        bool // a /proc of its own
	made        map[string]bool
}

// serverTasks bounds its processes and threads, where no other has its uid.
const serverTasks = 4096

// compile writes the program of a server, in the order of sandboxSpec.compile.
func (s *serverSpec) compile() (*program, error) {
	p, s2 := &program{}, &s.sandboxSpec
	s.made = map[string]bool{"/": true}
	for _, step := range []struct {
		name  string
		write func() error
	}{
		{"descriptors", func() error { return serverDescriptors(p) }},
		{"session", func() error { return newSession(p, s2) }},
		{"root", func() error { return s.newRoot(p) }},
		{"no_new_privs", func() error { return forbidNewPrivileges(p, s2) }},
		{"landlock", func() error { return scope(p) }},
		{"bounding capabilities", func() error { return dropBounding(p, s2) }},
		{"ids", func() error { return becomeUser(p, s2) }},
		{"parent death signal", func() error { return dieWithParent(p, s2) }},
		{"rlimits", func() error { return s.limit(p) }},
		{"capabilities", func() error { return dropCapabilities(p, s2) }},
		{"seccomp", func() error { return forbidCalls(p) }},
		{"execute " + s.visible.argv[0], func() error { return s.execute(p) }},
	} {
		p.step = step.name
		if err := step.write(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// serverDescriptors makes the feed its standard input and closes the report when
// it becomes the server.
func serverDescriptors(p *program) error {
	p.call(unix.SYS_UMASK, num(0o022))
	p.call(unix.SYS_CLOSE_RANGE, num(spawn.ReportFD+1), num(^uint32(0)), num(0))
	p.call(unix.SYS_DUP3, num(spawn.FeedFD), num(0), num(0))
	p.call(unix.SYS_CLOSE, num(spawn.FeedFD))
	p.call(unix.SYS_FCNTL, num(spawn.ReportFD), num(unix.F_SETFD), num(unix.FD_CLOEXEC))
	return nil
}

// newRoot builds a root of its own from what the server may see and leaves the
// machine's.
func (s *serverSpec) newRoot(p *program) error {
	m := mounter{p: p, s: s}
	m.step("private mounts")
	m.call(unix.SYS_MOUNT, num(0), m.text("/"), num(0), num(unix.MS_PRIVATE|unix.MS_REC), num(0))
	m.step("mount root")
	m.tmpfs("", "mode=0755,size=4m,nr_inodes=4k", unix.MS_NOSUID|unix.MS_NODEV)
	m.dir(serverTmp)
	m.tmpfs(serverTmp, "mode=1777,size=512m,nr_inodes=64k", unix.MS_NOSUID|unix.MS_NODEV)
	for _, dir := range []string{"/run", "/var", "/etc", "/dev/shm"} {
		m.dir(dir)
	}
	m.tmpfs("/dev/shm", "mode=1777,size=64m,nr_inodes=4k", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC)
	for _, device := range systemDevices {
		m.bind(bind{source: device, target: device, file: true, write: true}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	}
	for _, b := range s.visible.binds {
		m.bind(b, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	}
	for _, f := range s.etc {
		m.bind(bind{source: f[0], target: f[1], file: true}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	}
	m.bind(bind{source: s.home, target: serverHome, write: true}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	for _, mask := range s.visible.masks {
		if mask.file {
			mask.source = s.empty
			m.bind(mask, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
			continue
		}
		m.step("hide " + mask.target)
		m.tmpfs(mask.target, "mode=0,size=4k,nr_inodes=1", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY)
	}
	links := append([][2]string{{"/var/tmp", serverTmp}, {"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"}}, s.visible.links...)
	for _, l := range links {
		m.link(l[0], l[1])
	}
	if s.proc {
		m.dir("/proc")
		m.step("mount /proc")
		m.call(unix.SYS_MOUNT, m.text("proc"), m.at("/proc"), m.text("proc"), num(unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY), num(0))
	}
	m.enter()
	return m.err
}

// mounter writes mount calls; paths are below the new root.
type mounter struct {
	p   *program
	s   *serverSpec
	err error
}

func (m *mounter) step(name string) { m.p.step = name }

func (m *mounter) call(nr uintptr, args ...arg) { m.p.call(nr, args...) }

func (m *mounter) text(s string) arg {
	a, err := m.p.text(s)
	if err != nil && m.err == nil {
		m.err = err
	}
	return a
}

func (m *mounter) at(path string) arg { return m.text(filepath.Join(m.s.root, path)) }

func (m *mounter) tmpfs(at, options string, flags uint) {
	m.call(unix.SYS_MOUNT, m.text("tmpfs"), m.at(at), m.text("tmpfs"), num(flags), m.text(options))
}

// dir makes a directory and what is above it, unless it is there or in a
// directory of the machine that is shown.
func (m *mounter) dir(path string) {
	if m.s.made[path] || m.shown(path) {
		return
	}
	m.dir(filepath.Dir(path))
	m.s.made[path] = true
	m.step("make " + path)
	m.call(unix.SYS_MKDIRAT, num(unix.AT_FDCWD), m.at(path), num(0o755))
}

func (m *mounter) shown(path string) bool {
	for target := path; target != "/"; target = filepath.Dir(target) {
		if m.s.made["bind "+target] {
			return true
		}
	}
	return false
}

// bind shows a path of the machine.
func (m *mounter) bind(b bind, attrs uint64) {
	switch {
	case m.shown(b.target): // it is there
	case b.file:
		m.dir(filepath.Dir(b.target))
		m.step("make " + b.target)
		m.call(unix.SYS_MKNODAT, num(unix.AT_FDCWD), m.at(b.target), num(unix.S_IFREG|0o444), num(0))
	default:
		m.dir(b.target)
	}
	flags, recursive := uint(unix.MS_BIND), uint(0)
	if !b.file {
		m.s.made["bind "+b.target] = true
		// With all that is mounted below: a part of a tree cannot be shown in a
		// user namespace.
		flags, recursive = flags|unix.MS_REC, unix.AT_RECURSIVE
	}
	if !b.write {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	attr := unix.MountAttr{Attr_set: attrs}
	m.step("show " + b.target)
	m.call(unix.SYS_MOUNT, m.text(b.source), m.at(b.target), num(0), num(flags), num(0))
	m.call(unix.SYS_MOUNT_SETATTR, num(unix.AT_FDCWD), m.at(b.target), num(recursive), value(m.p, &attr), num(unsafe.Sizeof(attr)))
}

func (m *mounter) link(path, to string) {
	if m.shown(path) {
		return
	}
	m.dir(filepath.Dir(path))
	m.step("link " + path)
	m.call(unix.SYS_SYMLINKAT, m.text(to), num(unix.AT_FDCWD), m.at(path))
}

// enter makes the new root the only one, and read-only itself.
func (m *mounter) enter() {
	here, root, host := m.text("."), m.text("/"), "skill"
	m.step("enter root")
	m.call(unix.SYS_CHDIR, m.at(""))
	m.step("pivot_root")
	// The old root ends up on top of the new one and is detached from there.
	m.call(unix.SYS_PIVOT_ROOT, here, here)
	m.step("detach old root")
	m.call(unix.SYS_UMOUNT2, here, num(unix.MNT_DETACH))
	m.step("read-only root")
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	m.call(unix.SYS_MOUNT_SETATTR, num(unix.AT_FDCWD), root, num(0), value(m.p, &attr), num(unsafe.Sizeof(attr)))
	m.step("host name")
	m.call(unix.SYS_SETHOSTNAME, m.text(host), num(len(host)))
	m.step("enter home")
	m.call(unix.SYS_CHDIR, m.text(serverHome))
}

// scope keeps it from abstract sockets and signals of others, where the kernel can.
func scope(p *program) error {
	abi, err := landlockABI()
	if err != nil || abi < abiScope {
		return nil //nolint:nilerr // the namespaces are the boundary; this adds the sockets
	}
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	p.call(unix.SYS_LANDLOCK_CREATE_RULESET, value(p, &attr), num(unsafe.Sizeof(attr)), num(0))
	// The lowest descriptor that is free: the feed's was closed.
	p.call(unix.SYS_LANDLOCK_RESTRICT_SELF, num(spawn.FeedFD), num(0))
	p.call(unix.SYS_CLOSE, num(spawn.FeedFD))
	return nil
}

func (s *serverSpec) limit(p *program) error {
	set := func(resource int, most uint64) {
		limit := unix.Rlimit{Cur: most, Max: most}
		p.call(unix.SYS_PRLIMIT64, num(0), num(resource), value(p, &limit), num(0))
	}
	set(unix.RLIMIT_CORE, 1) // a core_pattern that is a pipe ignores 0 but obeys 1
	if s.OwnUser {
		set(unix.RLIMIT_NPROC, serverTasks)
	}
	return nil
}

// forbidCalls refuses what no server needs: to trace, to mount, to make
// namespaces, keys, and the parts of the kernel that have let others out.
func forbidCalls(p *program) error {
	code := serverFilter()
	at := p.bytes(code)
	// struct sock_fprog: u16 length, padding, pointer.
	header := binary.NativeEndian.AppendUint16(nil, uint16(len(code)/unix.SizeofSockFilter)) //nolint:gosec // G115: within range
	header = append(header, make([]byte, 6)...)
	fprog := p.bytes(binary.NativeEndian.AppendUint64(header, at.value))
	p.pointerAt(fprog, 8)
	p.call(unix.SYS_SECCOMP, num(unix.SECCOMP_SET_MODE_FILTER), num(0), fprog)
	return nil
}

// serverFilter allows all but the hostile calls and new namespaces; clone3, whose
// flags a filter cannot see, does not exist, and libc takes clone.
var serverFilter = sync.OnceValue(func() []byte {
	prog := []unix.SockFilter{
		load(dataArch), jump(unix.BPF_JEQ, auditArch, 1, 0), give(actKill),
		load(dataNr), jump(unix.BPF_JGE, x32Bit, 0, 1), give(actDeny),
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), give(actNoSys),
	}
	for _, nr := range hostile {
		prog = append(prog, jump(unix.BPF_JEQ, nr, 0, 1), give(actDeny))
	}
	prog = append(prog, jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 5))
	prog = append(prog, bits(0, cloneNewNS, 0).compile(1)...)
	prog = append(prog, give(actAllow), give(actDeny), give(actAllow))
	var code []byte
	for _, f := range prog {
		code = binary.NativeEndian.AppendUint16(code, f.Code)
		code = append(code, f.Jt, f.Jf)
		code = binary.NativeEndian.AppendUint32(code, f.K)
	}
	return code
})

// execute becomes the server.
func (s *serverSpec) execute(p *program) error {
	path, err := p.text(s.visible.argv[0])
	if err != nil {
		return err
	}
	args, err := p.texts(s.visible.argv)
	if err != nil {
		return err
	}
	for _, v := range s.env {
		if !strings.Contains(v, "=") {
			return fmt.Errorf("environment: %q has no value", v)
		}
	}
	env, err := p.texts(s.env)
	if err != nil {
		return err
	}
	p.call(unix.SYS_EXECVE, path, args, env)
	return nil
}
