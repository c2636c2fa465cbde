# layer: seccomp
import fcntl
r, w = os.pipe()
attempt("F_SETPIPE_SZ", fcntl.fcntl, w, 1031, 1 << 20)
