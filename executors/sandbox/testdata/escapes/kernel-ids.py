# layer: capabilities, seccomp
for name, fn in (("setuid", lambda: os.setuid(0)), ("setgid", lambda: os.setgid(0)), ("setresuid", lambda: os.setresuid(0, 0, 0)),
                 ("setgroups", lambda: os.setgroups([0])), ("setfsuid", lambda: syscall(122, 0)),
                 ("capset", lambda: syscall(126, b"\x22\x05\x08\x20\0\0\0\0", b"\xff" * 24)),
                 ("nice", lambda: os.nice(-5)), ("setpriority", lambda: os.setpriority(os.PRIO_PROCESS, 0, 5)),
                 ("affinity", lambda: os.sched_setaffinity(0, {0})), ("scheduler", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))):
    attempt(name, fn)
