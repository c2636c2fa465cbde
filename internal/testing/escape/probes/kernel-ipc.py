# layer: seccomp, namespaces
for name in ("shmget", "shmat", "semget", "msgget", "mq_open"):
    attempt(name, syscall, name, 0, 0, 0, 0, 0)
