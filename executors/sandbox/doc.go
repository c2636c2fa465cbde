// Package sandbox runs one Python script that a language model wrote, next to
// production, and returns the script's output.
//
// # Threat model
//
// The script is hostile: it may have been steered by the data it was written
// for. It runs native code at will (ctypes is importable), so nothing in Python
// is a boundary. It must not read or change a file of the host or of another
// run, see the environment or descriptors of its parent, reach any network or
// socket, start or signal a process, survive its run, or take more than its
// Limits. Exit status, standard output and traceback are under its control and
// are returned as data; nothing is decided on them but the label of the run.
//
// # How
//
// The program re-executes itself (see Init), builds the sandbox around that
// process and then becomes Python:
//
//	parent ──clone(NEWUSER|NEWNS|NEWPID|NEWNET|NEWIPC|NEWUTS)──▶ init
//	  │                 private mounts, pivot_root into the read-only runtime,
//	  │                 tmpfs /task, Landlock, own uid, rlimits, no descriptors,
//	  │                 no capabilities, seccomp allowlist, execve python
//	  ├──fd 3: script, input──▶ boot.py ──fd 1──▶ result
//	  ◀──fd 4: ready, traceback──┘
//
// Two drivers differ only in which of these layers the machine permits:
//
//	namespaces  all of them; needs user namespaces, no privilege
//	landlock    Landlock, seccomp and rlimits alone; no privilege at all
//
// Open runs a canary script through each, in that order, and takes the first that holds; the
// kernel's claims of support are never trusted. If none holds, Open fails and no script runs.
//
// # Honest limits
//
// Both share the host's kernel: one kernel bug reachable through the
// allowlist is an escape, and timers are precise enough for side channels. A
// run may use Limits.Memory and Limits.Scratch at the same time. CPU share,
// disk bandwidth and page cache are not bounded beyond the number of concurrent
// runs. Under landlock the script cannot create files, because the scratch
// directory is on a disk without quota, and stat(2) reveals which host paths exist.
// Where hostile tenants share a machine, a virtual machine is the right sandbox.
package sandbox
