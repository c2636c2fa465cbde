# layer: capabilities, seccomp
for name, fn in (("setuid", lambda: os.setuid(0)), ("setgid", lambda: os.setgid(0)), ("setresuid", lambda: os.setresuid(0, 0, 0)),
                 ("setgroups", lambda: os.setgroups([0])), ("setfsuid", lambda: syscall("setfsuid", 0)),
                 ("capset", lambda: syscall("capset", b"\x22\x05\x08\x20\0\0\0\0", b"\xff" * 24))):
    attempt(name, fn)
