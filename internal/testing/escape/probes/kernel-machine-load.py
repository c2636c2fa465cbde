# layer: seccomp
# How much memory is free and how many threads there are, what one box does can be
# read from in another; and so how full the disk is.
answer = ctypes.create_string_buffer(256) if ctypes.Array else b""
attempt("sysinfo", syscall, "sysinfo", answer)
attempt("statvfs of the runtime", os.statvfs, os.__file__)
attempt("load", os.getloadavg)
