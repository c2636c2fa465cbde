//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"aob.dev/writ/executors/sandbox/spawn"
)

// serverSpec has the parameters of a server's process.
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

// compile writes the program of a server, in the order of sandboxSpec.compile.
func (s *serverSpec) compile() (*program, error) {
	s.made = map[string]bool{"/": true}
	return compile(allLayers, []step{
		{"descriptors", layerDescriptors, serverDescriptors},
		{"session", layerSession, newSession},
		{"root", 0, s.newRoot},
		{"no_new_privs", 0, forbidNewPrivileges},
		{"landlock", layerLandlock, scope},
		{"bounding capabilities", layerCapabilities, s.dropBounding},
		{"parent death signal", 0, dieWithParent},
		{"rlimits", layerRlimits, noCore},
		{"capabilities", layerCapabilities, dropCapabilities},
		{"seccomp", layerSeccomp, forbidCalls},
		{"execute " + s.visible.argv[0], 0, s.execute},
	})
}

// serverDescriptors makes the feed its standard input and closes the report when
// it becomes the server.
func serverDescriptors(p *program) {
	p.call(unix.SYS_UMASK, num(0o022))
	p.call(unix.SYS_CLOSE_RANGE, num(spawn.ReportFD+1), num(^uint32(0)), num(0))
	p.call(unix.SYS_DUP3, num(spawn.FeedFD), num(0), num(0))
	p.call(unix.SYS_CLOSE, num(spawn.FeedFD))
	p.call(unix.SYS_FCNTL, num(spawn.ReportFD), num(unix.F_SETFD), num(unix.FD_CLOEXEC))
}

// newRoot builds a root of the files visible to the server and leaves the machine's.
func (s *serverSpec) newRoot(p *program) {
	m := mounter{p, s}
	m.step = "private mounts"
	m.call(unix.SYS_MOUNT, num(0), m.text("/"), num(0), num(unix.MS_PRIVATE|unix.MS_REC), num(0))
	m.step = "mount root"
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
		m.step = "hide " + mask.target
		m.tmpfs(mask.target, "mode=0,size=4k,nr_inodes=1", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY)
	}
	for _, l := range [][2]string{{"/var/tmp", serverTmp}, {"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"}} {
		m.link(l[0], l[1])
	}
	if s.proc {
		m.dir("/proc")
		m.step = "mount /proc"
		m.call(unix.SYS_MOUNT, m.text("proc"), m.inRoot("/proc"), m.text("proc"), num(unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY), num(0))
	}
	m.enter()
}

// mounter writes mount calls; paths are below the new root.
type mounter struct {
	*program
	s *serverSpec
}

func (m *mounter) inRoot(path string) arg { return m.text(filepath.Join(m.s.root, path)) }

func (m *mounter) tmpfs(at, options string, flags uint) {
	m.call(unix.SYS_MOUNT, m.text("tmpfs"), m.inRoot(at), m.text("tmpfs"), num(flags), m.text(options))
}

// dir makes a directory and its parents, unless it exists or is in a visible directory of the
// machine.
func (m *mounter) dir(path string) {
	if m.s.made[path] || m.shown(path) {
		return
	}
	m.dir(filepath.Dir(path))
	m.s.made[path] = true
	m.step = "make " + path
	m.call(unix.SYS_MKDIRAT, num(unix.AT_FDCWD), m.inRoot(path), num(0o755))
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
		m.step = "make " + b.target
		m.call(unix.SYS_MKNODAT, num(unix.AT_FDCWD), m.inRoot(b.target), num(unix.S_IFREG|0o444), num(0))
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
	m.step = "show " + b.target
	m.call(unix.SYS_MOUNT, m.text(b.source), m.inRoot(b.target), num(0), num(flags), num(0))
	m.attributes(m.inRoot(b.target), recursive, attrs)
}

func (m *mounter) link(path, to string) {
	if m.shown(path) {
		return
	}
	m.dir(filepath.Dir(path))
	m.step = "link " + path
	m.call(unix.SYS_SYMLINKAT, m.text(to), num(unix.AT_FDCWD), m.inRoot(path))
}

// enter makes the new root the only one, and read-only itself.
func (m *mounter) enter() {
	m.step = "enter root"
	m.call(unix.SYS_CHDIR, m.inRoot(""))
	m.pivot("skill")
	m.step = "read-only root"
	m.attributes(m.text("/"), 0, unix.MOUNT_ATTR_RDONLY)
	m.step = "enter home"
	m.call(unix.SYS_CHDIR, m.text(serverHome))
}

// scope blocks abstract sockets of others and signals to them, where the kernel can.
func scope(p *program) {
	abi, err := landlockABI()
	if err != nil || abi < abiScope {
		return // the namespaces are the boundary; this only adds the sockets
	}
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	p.call(unix.SYS_LANDLOCK_CREATE_RULESET, value(p, &attr), num(unsafe.Sizeof(attr)), num(0))
	// The lowest descriptor that is free: the feed's was closed.
	p.call(unix.SYS_LANDLOCK_RESTRICT_SELF, num(spawn.FeedFD), num(0))
	p.call(unix.SYS_CLOSE, num(spawn.FeedFD))
}

func noCore(p *program) {
	p.limit(unix.RLIMIT_CORE, 1) // a core_pattern that is a pipe ignores 0 but obeys 1
}

// forbidCalls refuses calls that no server needs: tracing, mounts, new namespaces, keys, and
// parts of the kernel that allowed escapes before.
func forbidCalls(p *program) { p.filter(serverFilter()) }

// serverFilter allows all but the hostile calls and new namespaces; clone3, whose
// flags a filter cannot see, does not exist, and libc takes clone.
var serverFilter = sync.OnceValue(func() filterCode {
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
	return filterOf(append(prog, give(actAllow), give(actDeny), give(actAllow)))
})

// execute becomes the server.
func (s *serverSpec) execute(p *program) {
	for _, v := range s.env {
		if !strings.Contains(v, "=") {
			p.fail(fmt.Errorf("environment: %q has no value", v))
		}
	}
	p.execute(s.visible.argv, s.env)
}
