# layer: root, landlock, user
for p in ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper",
          "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs",
          "/proc/sys/vm/overcommit_memory", "/sys/kernel/mm/transparent_hugepage/enabled"]:
    attempt("write " + p, os.open, p, os.O_WRONLY)
