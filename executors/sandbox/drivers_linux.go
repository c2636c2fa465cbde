//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// linuxDriver is both drivers: they differ in data only.
type linuxDriver struct {
	name     string
	clone    uintptr // namespaces besides the user namespace
	user     bool    // inside a user namespace
	root     string
	landlock int // lowest ABI
	layers   layers
	host     *host
}

// sandboxNamespaces isolate mounts, processes, network, IPC and host name.
const sandboxNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// insideID is the uid and gid of a sandbox in a user namespace made by root.
const insideID = 1000

// drivers are all, strongest first, as in DriverNames.
func (h *host) drivers() []*linuxDriver {
	return []*linuxDriver{
		{name: Namespaces, clone: sandboxNamespaces, user: true, root: rootPivot, landlock: abiAny, layers: allLayers, host: h},
		{name: Landlock, root: rootKeep, landlock: abiTruncate, layers: allLayers, host: h},
	}
}

// Start begins to build a sandbox and returns without waiting for it: Run of the sandbox reports a
// failure.
func (d *linuxDriver) Start(p Profile) (*Instance, error) {
	id := -1
	if d.host.ids != nil && d.layers&layerUser != 0 {
		id = d.host.ids.next()
	}
	spec := sandboxSpec{
		Runtime: d.host.runtime.path, Image: d.host.runtime.image, Root: d.root, Layers: d.layers, Scratch: taskDir, ID: id,
		OwnUser: d.user || id >= 0, OwnRoot: d.user, OwnPIDs: d.clone&unix.CLONE_NEWPID != 0,
		Landlock: d.landlock, Profile: p,
	}
	cleanup := func() error { return nil }
	if d.root != rootPivot {
		rel, err := d.host.scratch.make(id)
		cleanup = func() error { return d.host.scratch.remove(rel) }
		if err != nil {
			if rel != "" {
				err = errors.Join(err, cleanup())
			}
			return nil, fmt.Errorf("scratch: %w", err)
		}
		spec.Scratch = rel
	}
	inst, err := d.launch(spec, cleanup)
	if err != nil {
		return nil, errors.Join(err, cleanup())
	}
	inst.limits, inst.driver, inst.python = p.Limits, d.name, d.host.runtime.image.Python
	return inst, nil
}

// mapIDs puts the sandbox into a user namespace. Root maps itself, because only uid 0
// may mount there, and one uid that nothing else has, which the sandbox takes on before
// Python starts. Any other user can map only their own uid.
func (p *program) mapIDs(other int) {
	p.Clone |= unix.CLONE_NEWUSER
	ids := func(own int) string {
		lines := fmt.Sprintf("0 %d 1\n", own)
		if other >= 0 {
			lines += fmt.Sprintf("%d %d 1\n", insideID, other)
		}
		return lines
	}
	p.UIDMap, p.GIDMap = ids(os.Geteuid()), ids(os.Getegid())
}

// launch starts the sandbox and returns without waiting for it.
func (d *linuxDriver) launch(spec sandboxSpec, cleanup func() error) (*Instance, error) {
	forks := d.host.spawner
	if d.clone&unix.CLONE_NEWNET != 0 {
		forks = d.host.offline
	}
	b, prog, err := forks.isolate(d.clone, d.user, &spec, spec.compile)
	if err != nil {
		return nil, fmt.Errorf("start sandbox: %w", err)
	}
	b.explain, b.cleanup = prog.explain, cleanup
	go b.wait()
	if d.clone&unix.CLONE_NEWNS != 0 {
		b.afterwards(d.host.mounts.hold(b.proc.Pid))
	}
	if err := b.count(d.host.groups, spec.Limits.Memory+spec.Room+groupOverhead); err != nil {
		return nil, errors.Join(fmt.Errorf("control group: %w", err), b.Close())
	}
	return b, nil
}

// isolate forks a process that runs the program of compile: in namespaces, and in one
// for users if user.
func (s *spawner) isolate(namespaces uintptr, user bool, spec *sandboxSpec, compile func() (*program, error)) (*Instance, *program, error) {
	outside := spec.ID
	if user && outside >= 0 {
		spec.ID = insideID
	}
	p, err := compile()
	if err != nil {
		return nil, nil, err
	}
	p.Clone = namespaces
	if user {
		p.mapIDs(outside)
	}
	b, theirs, err := newInstance()
	if err != nil {
		return nil, nil, err
	}
	b.proc, err = s.start(p, theirs)
	theirs.close()
	if err != nil {
		b.closePipes()
		return nil, nil, err
	}
	return b, p, nil
}

// count puts the sandbox, which has no script yet, into a control group that counts its
// memory and the kernel's for it.
func (b *Instance) count(g *groups, memory int64) error {
	if g == nil {
		return nil
	}
	own, err := g.make(memory)
	if err != nil {
		return err
	}
	b.afterwards(own.remove)
	if err := own.add(b.proc.Pid); !errors.Is(err, unix.ESRCH) { // it ended: its wait reports why
		return err
	}
	return nil
}

// afterwards adds something to do before the rest of the cleanup.
func (b *Instance) afterwards(do func()) {
	rest := b.cleanup
	b.cleanup = func() error {
		do()
		return rest()
	}
}
