# layer: root, landlock
for d in ["/dev/shm", "/dev/mqueue", "/run", "/run/lock", "/var/tmp", "/home", os.path.dirname(SECRET)]:
    attempt("write to " + d, os.open, d + "/writ-escape", os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
