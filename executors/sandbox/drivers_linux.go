package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// linuxDriver is all four drivers: they differ in data only.
type linuxDriver struct {
	name     string
	clone    uintptr // namespaces besides the user namespace
	user     bool    // inside a user namespace
	needRoot bool
	root     string
	landlock int // lowest ABI
	host     *host
}

var _ Driver = (*linuxDriver)(nil)

// host is what the drivers of one Sandbox share.
type host struct {
	runtime runtimeDir
	scratch *scratch
	spawner *spawner
	ids     *idRange // nil if not root
}

// boxNamespaces isolate mounts, processes, network, IPC and host name.
const boxNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// insideID is the uid and gid of a box in a user namespace made by root.
const insideID = 1000

func (h *host) drivers() []Driver {
	return []Driver{
		&linuxDriver{name: Namespaces, clone: boxNamespaces, user: true, root: rootPivot, landlock: abiAny, host: h},
		&linuxDriver{name: Rootful, clone: boxNamespaces, needRoot: true, root: rootPivot, landlock: abiAny, host: h},
		&linuxDriver{name: LandlockChroot, needRoot: true, root: rootChroot, landlock: abiTruncate, host: h},
		&linuxDriver{name: Landlock, root: rootKeep, landlock: abiTruncate, host: h},
	}
}

func (d *linuxDriver) Name() string { return d.name }

func (d *linuxDriver) Start(ctx context.Context, p Profile) (*Box, error) {
	if auditArch == 0 {
		return nil, errArch
	}
	if d.needRoot && os.Geteuid() != 0 {
		return nil, errors.New("needs root")
	}
	id := -1
	if d.host.ids != nil {
		id = d.host.ids.next()
	}
	spec := boxSpec{
		Runtime: d.host.runtime.path, Image: d.host.runtime.image, Root: d.root, Scratch: taskDir, ID: id,
		OwnUser: d.user || id >= 0, Limits: p.Limits, Room: p.Room, Preload: p.Preload, Landlock: d.landlock,
	}
	attr := &syscall.SysProcAttr{Cloneflags: d.clone, Pdeathsig: syscall.SIGKILL}
	if d.user {
		d.mapIDs(attr, &spec)
	}
	cleanup := func() error { return nil }
	if d.root != rootPivot {
		rel, err := d.host.scratch.make(id)
		cleanup = func() error { return d.host.scratch.remove(rel) }
		if err != nil {
			if rel != "" {
				cleanup()
			}
			return nil, fmt.Errorf("scratch: %w", err)
		}
		spec.Scratch = rel
	}
	box, err := d.launch(spec, attr, cleanup)
	if err != nil {
		return nil, errors.Join(err, cleanup())
	}
	box.limits, box.driver, box.python = p.Limits, d.name, d.host.runtime.image.Python
	if err := box.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, box.Close())
	}
	return box, nil
}

// mapIDs puts the box into a user namespace. Root maps itself, because init
// keeps its capabilities across execve only as uid 0, and one uid that nobody
// else has, which init takes on before Python starts. Anybody else can map but
// their own uid.
func (d *linuxDriver) mapIDs(attr *syscall.SysProcAttr, spec *boxSpec) {
	attr.Cloneflags |= unix.CLONE_NEWUSER
	ids := func(own int) []syscall.SysProcIDMap {
		list := []syscall.SysProcIDMap{{ContainerID: 0, HostID: own, Size: 1}}
		if spec.ID >= 0 {
			list = append(list, syscall.SysProcIDMap{ContainerID: insideID, HostID: spec.ID, Size: 1})
		}
		return list
	}
	attr.UidMappings, attr.GidMappings = ids(os.Geteuid()), ids(os.Getegid())
	if spec.ID >= 0 {
		attr.GidMappingsEnableSetgroups = true
		spec.ID = insideID
	}
}

// launch starts init and returns the box without waiting for it.
func (d *linuxDriver) launch(spec boxSpec, attr *syscall.SysProcAttr, cleanup func() error) (*Box, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	b, theirs, err := newBox()
	if err != nil {
		return nil, err
	}
	b.cmd = &exec.Cmd{
		// The running program, even if its file was replaced since.
		Path: "/proc/self/exe",
		Args: []string{initName, string(raw)},
		// For the Go runtime of init only; Python gets another environment.
		Env:         []string{"GOGC=off", "GOMAXPROCS=1"},
		Stdout:      theirs.out,
		Stderr:      theirs.errs,
		ExtraFiles:  []*os.File{theirs.feed, theirs.report},
		SysProcAttr: attr,
	}
	err = d.host.spawner.start(b.cmd)
	theirs.close()
	if err != nil {
		b.closePipes()
		return nil, fmt.Errorf("start box: %w", err)
	}
	b.cleanup = cleanup
	go b.wait()
	return b, nil
}
