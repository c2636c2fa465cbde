# layer: seccomp, landlock
import stat
attempt("mknod char", os.mknod, "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
attempt("mknod block", os.mknod, "disk", 0o666 | stat.S_IFBLK, os.makedev(8, 0))
attempt("mkfifo", os.mkfifo, "fifo")
attempt("open_tree tty", open, "/dev/tty")
