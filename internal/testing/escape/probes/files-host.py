# layer: root, landlock
for p in [SECRET, "/etc/passwd", "/etc/shadow", "/etc/hosts", "/root/.ssh/id_rsa", "/var/run/docker.sock", "/dev/mem", "/dev/kmsg", "/proc/version", "/sys/kernel/notes"]:
    attempt(p, open, p, "rb")
